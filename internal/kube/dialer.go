package kube

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Dialer opens connections to the API server and stores their remote addresses, whatever name or address the
// configuration has. The zero value is ready to use.
type Dialer struct {
	mu    sync.Mutex
	known []netip.Addr // the latest last
}

// dialsKept is the number of stored addresses of the API server: a name may resolve to several.
const dialsKept = 16

// DialContext opens a connection like client-go's default dialer.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if a, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		latest := a.Addr().Unmap()
		d.known = append(slices.DeleteFunc(d.known, func(k netip.Addr) bool { return k == latest }), latest)
		d.known = d.known[max(len(d.known)-dialsKept, 0):]
	}
	return c, nil
}

// Dialed returns the addresses of recent connections.
func (d *Dialer) Dialed() []netip.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.known)
}
