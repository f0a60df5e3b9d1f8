package wireguard

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"
)

// tunDevice is wireguard-go's TUN adapted for forwarding: it never coalesces UDP, and it neither monitors the link from
// other threads, which may be in another network namespace, nor polls it every second.
type tunDevice struct {
	tun.Device
	mtu     atomic.Int64
	limited chan struct{} // closed after the device's buffers have their limit

	eventsMu sync.Mutex // guards closed, and prevents sends to events after its close
	events   chan tun.Event
	closed   bool

	batchMu sync.Mutex // guards the following fields
	batch   [][]byte
	single  bool // the kernel rejected a coalesced packet: no more coalescing
}

// openClone opens the device that creates TUNs.
func openClone() (fd int, err error) {
	const clone = "/dev/net/tun"
	if fd, err = unix.Open(clone, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
		return 0, &os.PathError{Op: "open", Path: clone, Err: err}
	}
	return fd, nil
}

// openTUN creates the link in the network namespace of the calling thread. It requires /dev/net/tun.
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
	// TCP is offloaded in large segments, UDP packet by packet: some kernels (7.0 to 7.1.4) corrupt UDP segmentation of
	// forwarded packets, see https://github.com/tailscale/tailscale/issues/19777.
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

// Write implements tun.Device. wireguard-go would coalesce UDP packets of a flow into one large packet, which VXLAN and
// Geneve forward incorrectly (https://github.com/tailscale/wireguard-go/issues/26). It coalesces only packets of one
// call, so UDP packets are written one by one and all others together.
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
			// Some kernels (6.6.44) reject valid coalesced TCP: https://github.com/tailscale/tailscale/issues/13041.
			// These packets are lost, and TCP retransmits them.
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

// BatchSize implements tun.Device. The loops of a device call it before they take buffers.
func (t *tunDevice) BatchSize() int {
	<-t.limited
	return t.Device.BatchSize()
}

// isUDP reports whether the header of an IP packet has protocol UDP. Extension headers of IPv6 are not parsed:
// wireguard-go does not coalesce such packets.
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

// setMTU sets the MTU of wireguard-go, to which packets are padded; the link's MTU is set separately.
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
	default: // an update is already pending
	}
}

// Events implements tun.Device. There are no up and down events: the device is up while it exists.
func (t *tunDevice) Events() <-chan tun.Event { return t.events }

// Close implements tun.Device. The link is deleted with it.
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
