package echo

import (
	"cmp"
	"maps"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

const (
	// sendersMost is how many senders have a limit of their own; further ones share one.
	sendersMost = 8192
	// sendersPause is between two searches for senders that can be forgotten.
	sendersPause = time.Second
)

// limits are how many requests a Responder answers: of each sender and of all. Only the receiving goroutine uses them.
type limits struct {
	all     *rate.Limiter
	each    int // a second, and at once; 0: no limit
	senders map[netip.Addr]*rate.Limiter
	others  *rate.Limiter // of those for whom there is no room
	swept   time.Time
}

func newLimits(r Responder) *limits {
	return &limits{
		all:  rate.NewLimiter(rate.Limit(cmp.Or(r.Rate, DefaultRate)), cmp.Or(r.Burst, DefaultBurst)),
		each: r.Each, senders: map[netip.Addr]*rate.Limiter{}, others: rate.NewLimiter(rate.Limit(r.Each), r.Each),
	}
}

// allow reports whether a request is answered. One that its sender's limit refuses takes nothing from the others.
func (l *limits) allow(from netip.Addr) bool {
	return (l.each == 0 || l.of(from).Allow()) && l.all.Allow()
}

// of is the limit of a sender. Where there is no room, those are forgotten who have their whole limit left.
func (l *limits) of(from netip.Addr) *rate.Limiter {
	own := l.senders[from]
	if own != nil {
		return own
	}
	if len(l.senders) >= sendersMost {
		if now := time.Now(); now.Sub(l.swept) >= sendersPause {
			l.swept = now
			maps.DeleteFunc(l.senders, func(_ netip.Addr, s *rate.Limiter) bool { return s.TokensAt(now) >= float64(l.each) })
		}
		if len(l.senders) >= sendersMost {
			return l.others
		}
	}
	own = rate.NewLimiter(rate.Limit(l.each), l.each)
	l.senders[from] = own
	return own
}
