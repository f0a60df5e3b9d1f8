package echo

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/cidr"
)

// TestLimitsBySender: a flooding sender uses up only its own limit, also if there are more senders than limits.
func TestLimitsBySender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 10
		l := newLimits(Responder{Rate: 100_000, Burst: 100_000, Each: each})
		allowed := func(from netip.Addr, requests int) (n int) {
			for range requests {
				if l.allow(from) {
					n++
				}
			}
			return n
		}
		expect := func(what string, got, want int) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %d answered, want %d", what, got, want)
			}
		}
		loud, calm := nodeAddr.Addr(), otherAddr.Addr()
		expect("flood", allowed(loud, 200_000), each)
		expect("calm one", allowed(calm, each), each)
		stranger := func(i int) netip.Addr { return cidr.Address(10<<24 | uint32(i)) }
		for i := range 2 * sendersMost {
			l.allow(stranger(i))
		}
		if n := len(l.senders); n != sendersMost {
			t.Errorf("%d senders have a limit of their own", n)
		}
		after(100 * time.Millisecond)
		expect("calm one beside many strangers", allowed(calm, each), each/10)
		expect("strangers without room", allowed(stranger(sendersMost), 5)+allowed(stranger(sendersMost+1), 5), each/10)
		after(time.Second)
		expect("stranger once there is room", allowed(stranger(3*sendersMost), 2*each), each)
		expect("another one", allowed(stranger(3*sendersMost+1), 2*each), each)
		if n := len(l.senders); n > 3 {
			t.Errorf("%d senders are remembered that have their whole limit left", n)
		}
	})
}
