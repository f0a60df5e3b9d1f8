package tunnel

import (
	"fmt"
	"reflect"

	"golang.zx2c4.com/wireguard/device"
)

// How many buffers of 64 KiB a device may have for packets. wireguard-go has a limit on Android only: elsewhere packets
// that arrive faster than they are decrypted and written would take gigabytes, and the kernel would end the process,
// which is the tunnel. Where the limit is reached, packets wait in the queues of the kernel, which drops those that do
// not fit. Handshakes have a queue of 1,024 of their own (device.QueueHandshakeSize), and no limit in common with
// packets: who checks them may have to send one.
const (
	// held by the loops that read the two sockets, 128 each (conn.IdealBatchSize); they have no limit in a pool
	readBuffers = 256
	// of packets from the tunnel, and as many of packets into it. The loop that reads the link holds 128 of these, and
	// one read is up to 47 packets of a TCP stream.
	packetBuffers = 384
	allBuffers    = readBuffers + 2*packetBuffers
)

// limitBuffers replaces a device's pools, which it has no option for
// (https://github.com/WireGuard/wireguard-go/pull/69), before anything is taken from them. Packets in each direction
// have a limit of their own: those that wait for a session would otherwise keep the handshake out.
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
