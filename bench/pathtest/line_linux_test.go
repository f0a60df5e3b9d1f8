package pathtest

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
)

// linePort is the port of the line for the client.
const linePort = 40000

// line is a path between two gateways: it carries datagrams of the client, from any of its addresses, to the server's
// endpoint and back. It can delay datagrams to the client, like a queue, or drop a client's, like a NAT that lost a
// mapping.
type line struct {
	near, far *net.UDPConn

	mu     sync.Mutex
	delay  time.Duration
	client netip.AddrPort // address of the last packet
	lost   netip.AddrPort // address whose packets are dropped
}

// newLine creates a line to a server's endpoint, in the namespace between the clusters.
func newLine(t *testing.T, underlay netns.Namespace, to netip.AddrPort) *line {
	t.Helper()
	l := &line{}
	underlay.Inside(func() (err error) {
		if l.near, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(clusters.Outside, linePort))); err != nil {
			return err
		}
		l.far, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
		return err
	})
	var both sync.WaitGroup
	t.Cleanup(func() {
		_, _ = l.near.Close(), l.far.Close()
		both.Wait()
	})
	both.Go(func() {
		receive(l.near, func(b []byte, from netip.AddrPort) {
			if l.carries(from) {
				_, _ = l.far.Write(b) // an error refers to an earlier datagram
			}
		})
	})
	both.Go(func() {
		var waiting sync.WaitGroup
		defer waiting.Wait()
		receive(l.far, func(b []byte, _ netip.AddrPort) {
			to, delay := l.toClient()
			waiting.Add(1)
			time.AfterFunc(delay, func() {
				defer waiting.Done()
				_, _ = l.near.WriteToUDPAddrPort(b, to)
			})
		})
	})
	return l
}

// receive passes each datagram to a function, until the socket is closed.
func receive(from *net.UDPConn, handle func(b []byte, from netip.AddrPort)) {
	for {
		b := make([]byte, 2048)
		n, sender, err := from.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil { // otherwise an ICMP error for an earlier datagram
			handle(b[:n], sender)
		}
	}
}

// carries reports whether the line forwards packets from an address, and stores that address for answers.
func (l *line) carries(from netip.AddrPort) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from == l.lost {
		return false
	}
	l.client = from
	return true
}

// toClient returns the destination of the next datagram, and its delay; no address while the client is lost.
func (l *line) toClient() (netip.AddrPort, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == l.lost {
		return netip.AddrPort{}, 0
	}
	return l.client, l.delay
}

func (l *line) setDelay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

// loseMapping drops all packets from and to the client's present address.
func (l *line) loseMapping() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = l.client
}
