package wireguard

import (
	"fmt"
	"reflect"

	"golang.zx2c4.com/wireguard/device"
)

// Maximum numbers of packet buffers, 64 KiB each, of a device. wireguard-go has a limit on Android only: elsewhere
// packets that arrive faster than they are decrypted and written would take gigabytes, and the kernel would kill the
// process, which carries the tunnel. At the limit, packets wait in kernel queues, which drop those that do not fit.
// Handshakes have a separate queue of 1,024 (device.QueueHandshakeSize) and share no limit with packets, because
// processing a handshake may send one.
const (
	// Used by the loops that read the two sockets, 128 each (conn.IdealBatchSize). They are not taken from a pool.
	readBuffers = 256
	// For packets from the tunnel, and as many for packets into it. The loop that reads the link uses 128 of these, and
	// one read returns up to 47 packets of a TCP stream.
	packetBuffers = 384
	allBuffers    = readBuffers + 2*packetBuffers
)

// limitBuffers replaces a device's pools, for which wireguard-go has no option
// (https://github.com/WireGuard/wireguard-go/pull/69), before they are used. Each direction has its own limit:
// otherwise packets that wait for a session could block the handshake. If the handshakes of two full devices cross,
// neither repeats its own (expiredRetransmitHandshake, device/timers.go): renewals of silent tunnels end that.
func limitBuffers(d *device.Device) error {
	pools := reflect.ValueOf(d).Elem().FieldByName("pool")
	for _, p := range []struct {
		name string
		most uint32
		new  func() any
	}{
		{"inboundElements", packetBuffers, func() any { return new(device.QueueInboundElement) }},
		{"outboundElements", packetBuffers, func() any { return new(device.QueueOutboundElement) }},
	} {
		field := pools.FieldByName(p.name)
		if !field.IsValid() || field.Type() != reflect.TypeFor[*device.WaitPool]() {
			return fmt.Errorf("limit the buffers of WireGuard: this version of wireguard-go has no pool %s", p.name)
		}
		*(**device.WaitPool)(field.Addr().UnsafePointer()) = device.NewWaitPool(p.most, p.new)
	}
	return nil
}
