package nft

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/assert"
)

// TestNoGap changes the table 200 times, or until enough was sent, while packets flow: a flow that all versions accept,
// one that all versions drop, and new connections that all versions translate.
func TestNoGap(t *testing.T) {
	const changes = 200
	top := newTopology(t)
	version := func(i uint32) Table {
		extra := Rule{Mark(1000 + i), Counter()}
		return Table{
			Name: "packets",
			Sets: []Set{NewSet("marked", netip.PrefixFrom(cidr.Address(i), 32))},
			Chains: []Chain{
				{Name: "called", Rules: []Rule{extra, {UDPDPort(7001), Drop()}, {UDPDPort(7002), Return()}}},
				{
					Name: "through", Hook: &Hook{Type: "filter", Point: "forward", Drop: true},
					Rules: []Rule{extra, {Jump("called")}, {Protocol(UDP), Accept()}},
				},
				postrouting("filter", 110, extra, Rule{
					SAddr(netip.MustParsePrefix("10.1.0.0/24")), SetSAddrPrefix(netip.MustParsePrefix("10.9.0.0/24")),
				}),
			},
		}
	}
	top.router.apply(top.conn, version(0))

	pass := newFlow(t, top, 7000, 1)
	drop := newFlow(t, top, 7001, 1)
	translated := newFlow(t, top, 7002, 3000)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	stop := make(chan struct{})
	var senders sync.WaitGroup
	senders.Go(func() { pass.send(stop, nil) })
	senders.Go(func() { drop.send(stop, tick.C) })
	senders.Go(func() { translated.send(stop, nil) })
	few := func() bool {
		return pass.sent.Load() < changes || translated.sent.Load() < changes || drop.sent.Load() < changes/4
	}
	for i := uint32(0); i < changes || i < 50*changes && few() && !t.Failed(); i++ {
		top.router.apply(top.conn, version(i%7+1))
	}
	close(stop)
	senders.Wait()
	if few() {
		t.Errorf("little was sent: %d, %d and %d datagrams", pass.sent.Load(), drop.sent.Load(), translated.sent.Load())
	}
	pass.finish(pass.sent.Load())
	translated.finish(translated.sent.Load())
	drop.finish(0)

	translation := netip.MustParseAddr("10.9.0.5")
	for name, f := range map[string]*flow{"passing": pass, "translated": translated} {
		if f.received.Load() != f.sent.Load() {
			t.Errorf("%s: %d of %d datagrams arrived", name, f.received.Load(), f.sent.Load())
		}
		if len(f.sources) != 1 || f.sources[translation] == 0 {
			t.Errorf("%s: sources %v, want %s alone", name, f.sources, translation)
		}
		t.Logf("%s: %d datagrams during %d changes", name, f.sent.Load(), changes)
	}
	if drop.received.Load() != 0 {
		t.Errorf("dropped: %d of %d datagrams arrived", drop.received.Load(), drop.sent.Load())
	}
}

// flow sends datagrams from left to a port of right.
type flow struct {
	t        *testing.T
	sockets  []*net.UDPConn // of left, used in turn
	at       *net.UDPConn
	done     chan struct{}
	window   chan struct{} // one entry for each datagram in flight
	sent     atomic.Int64
	received atomic.Int64
	sources  map[netip.Addr]int
}

// newFlow starts to receive. Each source is a separate connection.
func newFlow(t *testing.T, top topology, port uint16, sources int) *flow {
	const onTheWay = 64 // fits all buffers
	f := &flow{
		t: t, at: top.right.ListenUDP(fmt.Sprintf("%s:%d", rightIP, port)),
		done: make(chan struct{}), window: make(chan struct{}, onTheWay), sources: make(map[netip.Addr]int),
	}
	for range sources {
		f.sockets = append(f.sockets, top.left.ListenUDP(leftIP+":0"))
	}
	go func() {
		defer close(f.done)
		for buf := make([]byte, 64); ; {
			_, source, err := f.at.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			select {
			case <-f.window:
			default:
			}
			f.received.Add(1)
			f.sources[source.Addr()]++
		}
	}()
	return f
}

// send sends when a datagram arrives, and additionally at each tick, until it is stopped.
func (f *flow) send(stop chan struct{}, tick <-chan time.Time) {
	for {
		select {
		case <-stop:
			return
		case f.window <- struct{}{}:
		case <-tick:
		}
		socket := f.sockets[f.sent.Load()%int64(len(f.sockets))]
		if _, err := socket.WriteTo([]byte("x"), f.at.LocalAddr()); err != nil {
			f.t.Error(err)
			return
		}
		f.sent.Add(1)
	}
}

// finish stops the receiver after the expected number of arrivals and a delay for datagrams in flight: a veth pair
// delivers within the sender's call or soon after, in a softirq.
func (f *flow) finish(arrivals int64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(answerWait); f.received.Load() < arrivals && time.Now().Before(end); {
		<-tick.C
	}
	assert.NoError(f.t, f.at.SetReadDeadline(time.Now().Add(refusalWait)))
	<-f.done
}
