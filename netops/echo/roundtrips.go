package echo

import "time"

// mostTimeout bounds how long a request on a slow path is waited for, whatever came before.
const mostTimeout = 2500 * time.Millisecond

// roundTrips are the smoothed round trip time and its variation, as RFC 6298 computes them (section 2). The zero value
// has seen none.
type roundTrips struct{ smoothed, variation time.Duration }

// add takes a measured round trip.
func (r *roundTrips) add(rtt time.Duration) {
	if *r == (roundTrips{}) {
		r.smoothed, r.variation = rtt, rtt/2
		return
	}
	r.variation += ((r.smoothed - rtt).Abs() - r.variation) / 4
	r.smoothed += (rtt - r.smoothed) / 8
}

// timeout is after how long a request is lost: a time, or longer where round trips are, so that a packet which is slow,
// in a long queue or on the way to a satellite, is not taken for lost.
func (r roundTrips) timeout(least time.Duration) time.Duration {
	return min(max(least, r.smoothed+max(least/2, 4*r.variation)), longestTimeout(least))
}

// longestTimeout is what timeout returns at most.
func longestTimeout(least time.Duration) time.Duration {
	return max(least, min(4*least, mostTimeout))
}
