package echo

import (
	"cmp"
	"maps"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

const (
	// sendersMost is the number of senders with a limit of their own. Further senders share one.
	sendersMost = 8192
	// sendersPause is the minimum time between two searches for idle senders.
	sendersPause = time.Second
)

// limits are the rate limits of a Responder: per sender and in total. They are used only by the receiving goroutine.
type limits struct {
	all     *rate.Limiter
	each    int // per second, and as a burst; 0: no limit
	senders map[netip.Addr]*rate.Limiter
	others  *rate.Limiter // shared by senders beyond sendersMost
	swept   time.Time
}

func newLimits(r Responder) *limits {
	return &limits{
		all:  rate.NewLimiter(rate.Limit(cmp.Or(r.Rate, DefaultRate)), cmp.Or(r.Burst, DefaultBurst)),
		each: r.Each, senders: map[netip.Addr]*rate.Limiter{}, others: rate.NewLimiter(rate.Limit(r.Each), r.Each),
	}
}

// allow reports whether a request is answered. Requests beyond the sender's own limit do not count against the total.
func (l *limits) allow(from netip.Addr) bool {
	return (l.each == 0 || l.of(from).Allow()) && l.all.Allow()
}

// of returns the limit of a sender. If the map is full, senders with an unused limit are removed.
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
