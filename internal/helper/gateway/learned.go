//go:build linux

package gateway

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// learned are addresses from the peer's messages: a bounded number, which the peer cannot make change faster than they
// expire. The lock of the gateway's echoes guards it.
type learned struct {
	ignored *prometheus.CounterVec
	most    int // addresses
	// life is the number of further messages with an address after which one that was not among them expires. This
	// counts messages, not time: a silent tunnel needs the addresses that were received last.
	life  int
	count int                // of the received addresses
	named map[netip.Addr]int // count at the latest message with each address
}

// sentMost is the maximum number of its nodes that a gateway sends to the peer, in turn. What the gateways of a peer
// send differs where they reach different nodes, so more are accepted.
const sentMost = 8

func newLearned(ignored *prometheus.CounterVec, most, life int) learned {
	return learned{ignored: ignored, most: most, life: life, named: map[netip.Addr]int{}}
}

// age counts a message that can have an address.
func (l *learned) age() {
	l.count++
	maps.DeleteFunc(l.named, func(_ netip.Addr, at int) bool { return l.count-at > l.life })
}

// add stores the address in a message that was counted, and reports whether there is room for it.
func (l *learned) add(a netip.Addr) bool {
	if _, known := l.named[a]; !known && len(l.named) >= l.most {
		l.ignored.WithLabelValues("too many addresses").Inc()
		return false
	}
	l.named[a] = l.count
	return true
}

// drop removes the addresses that are no longer acceptable.
func (l *learned) drop(refused func(netip.Addr) bool) {
	maps.DeleteFunc(l.named, func(a netip.Addr, _ int) bool { return refused(a) })
}

// current returns the addresses, sorted.
func (l *learned) current() []netip.Addr {
	return slices.SortedFunc(maps.Keys(l.named), netip.Addr.Compare)
}
