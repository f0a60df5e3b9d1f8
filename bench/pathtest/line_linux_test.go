package pathtest

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
)

// linePort is where the client finds the line.
const linePort = 40000

// line is a path between two gateways: it carries datagrams of the client, by whatever address it sends from, to the
// server's endpoint and back. It can delay what it carries to the client, as a queue does, or lose a client, as a NAT
// does that forgets a mapping.
type line struct {
	near, far *net.UDPConn

	mu     sync.Mutex
	delay  time.Duration
	client netip.AddrPort // address of the last packet
	lost   netip.AddrPort // address whose packets are dropped
}

// newLine makes a line to a server's endpoint, in the namespace between the clusters.
func newLine(t *testing.T, underlay netns.Namespace, to netip.AddrPort) *line {
	t.Helper()
	l := &line{}
	if err := underlay.Do(func() (err error) {
		if l.near, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(outside, linePort))); err != nil {
			return err
		}
		l.far, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	t.Cleanup(func() {
		_, _ = l.near.Close(), l.far.Close()
		both.Wait()
	})
	both.Go(func() {
		receive(l.near, func(b []byte, from netip.AddrPort) {
			if l.carries(from) {
				_, _ = l.far.Write(b) // an error is that of an earlier datagram
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

// receive hands each datagram to a function, until the socket is closed.
func receive(from *net.UDPConn, take func(b []byte, from netip.AddrPort)) {
	for {
		b := make([]byte, 2048)
		n, sender, err := from.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil { // else it is an ICMP error of an earlier datagram
			take(b[:n], sender)
		}
	}
}

// carries reports whether the line forwards packets from an address, and remembers that address for answers.
func (l *line) carries(from netip.AddrPort) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from == l.lost {
		return false
	}
	l.client = from
	return true
}

// toClient is where the next datagram goes, and when; no address while the client is lost.
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

// forget loses the client's mapping: nothing from or to its present address passes any more.
func (l *line) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = l.client
}
