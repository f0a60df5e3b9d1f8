package tunnel

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"
)

// tunDevice is wireguard-go's TUN made fit for forwarding: it never coalesces UDP, and it neither watches the
// link from other threads, whose network namespace may be another one, nor wakes up each second to do so.
type tunDevice struct {
	tun.Device
	mtu     atomic.Int64
	limited chan struct{} // closed once the device's buffers have their limit

	eventsMu sync.Mutex // guards closed, and events against a send after its close
	events   chan tun.Event
	closed   bool

	batchMu sync.Mutex // guards what follows
	batch   [][]byte
	single  bool // the kernel refused a coalesced packet: no more of them
}

// openClone opens the device by which TUNs are made.
func openClone() (fd int, err error) {
	const clone = "/dev/net/tun"
	if fd, err = unix.Open(clone, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
		return 0, &os.PathError{Op: "open", Path: clone, Err: err}
	}
	return fd, nil
}

// openTUN makes the link in the network namespace of the calling thread. It needs /dev/net/tun.
func openTUN(name string, mtu int) (*tunDevice, error) {
	fd, err := openClone()
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create TUN %s: %w", name, err), unix.Close(fd))
	}
	native, _, err := tun.CreateUnmonitoredTUNFromFD(fd) // owns fd from here on
	if err != nil {
		return nil, fmt.Errorf("create TUN %s: %w", name, err)
	}
	// The kernel shall hand over TCP in large pieces, UDP packet by packet: some kernels (7.0 to 7.1.4) corrupt
	// UDP segmentation of forwarded packets, see https://github.com/tailscale/tailscale/issues/19777.
	const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads); err != nil {
		return nil, errors.Join(fmt.Errorf("set offloads of TUN %s: %w", name, err), native.Close())
	}
	return newTUNDevice(native, mtu), nil
}

func newTUNDevice(native tun.Device, mtu int) *tunDevice {
	t := &tunDevice{Device: native, limited: make(chan struct{}), events: make(chan tun.Event, 1)}
	t.mtu.Store(int64(mtu))
	return t
}

// Write implements tun.Device. wireguard-go would join UDP packets of a flow into one large packet, which
// VXLAN and Geneve send on wrongly (https://github.com/tailscale/wireguard-go/issues/26). It joins only what
// comes in one call, so UDP goes down one by one and the rest together.
func (t *tunDevice) Write(bufs [][]byte, offset int) (int, error) {
	t.batchMu.Lock()
	defer t.batchMu.Unlock()
	t.batch = t.batch[:0]
	var (
		total int
		errs  error
	)
	write := func(batch [][]byte) {
		n, err := t.Device.Write(batch, offset)
		total += n
		if errors.Is(err, unix.EIO) {
			return // the link is down and drops packets, which is no error
		}
		if len(batch) > 1 && errors.Is(err, unix.EINVAL) {
			// Some kernels (6.6.44) refuse sound coalesced TCP: https://github.com/tailscale/tailscale/issues/13041.
			// These packets are lost, TCP sends them again.
			t.single = true
		}
		errs = errors.Join(errs, err)
	}
	for i, buf := range bufs {
		if t.single || isUDP(buf[offset:]) {
			write(bufs[i : i+1])
		} else {
			t.batch = append(t.batch, buf)
		}
	}
	if len(t.batch) > 0 {
		write(t.batch)
	}
	return total, errs
}

// BatchSize implements tun.Device. The loops of a device ask for it before they take buffers.
func (t *tunDevice) BatchSize() int {
	<-t.limited
	return t.Device.BatchSize()
}

// isUDP reports whether the IP packet says that it carries UDP. Extension headers of IPv6 are not followed:
// wireguard-go does not join such packets.
func isUDP(packet []byte) bool {
	switch {
	case len(packet) >= 20 && packet[0]>>4 == 4:
		return packet[9] == unix.IPPROTO_UDP
	case len(packet) >= 40 && packet[0]>>4 == 6:
		return packet[6] == unix.IPPROTO_UDP
	}
	return false
}

// MTU implements tun.Device.
func (t *tunDevice) MTU() (int, error) { return int(t.mtu.Load()), nil }

// setMTU tells wireguard-go, which pads no packet beyond the MTU; the link's MTU is set apart.
func (t *tunDevice) setMTU(mtu int) {
	if t.mtu.Swap(int64(mtu)) == int64(mtu) {
		return
	}
	t.eventsMu.Lock()
	defer t.eventsMu.Unlock()
	if t.closed {
		return
	}
	select {
	case t.events <- tun.EventMTUUpdate:
	default: // the one that waits will do
	}
}

// Events implements tun.Device. There is never an up or a down: the device is up while it exists.
func (t *tunDevice) Events() <-chan tun.Event { return t.events }

// Close implements tun.Device. The link goes with it.
func (t *tunDevice) Close() error {
	t.eventsMu.Lock()
	defer t.eventsMu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	close(t.events)
	return t.Device.Close()
}
