package echo

import "time"

// mostTimeout limits the timeout of requests on a slow path.
const mostTimeout = 2500 * time.Millisecond

// roundTrips has the smoothed round trip time and its variation, as computed in RFC 6298 (section 2). The zero value
// has no measurements.
type roundTrips struct{ smoothed, variation time.Duration }

// add updates both with a measured round trip.
func (r *roundTrips) add(rtt time.Duration) {
	if *r == (roundTrips{}) {
		r.smoothed, r.variation = rtt, rtt/2
		return
	}
	r.variation += ((r.smoothed - rtt).Abs() - r.variation) / 4
	r.smoothed += (rtt - r.smoothed) / 8
}

// timeout returns the time after which a request is lost: least, or longer for long round trips, so that slow packets,
// for example in a long queue or by satellite, do not count as lost.
func (r roundTrips) timeout(least time.Duration) time.Duration {
	return min(max(least, r.smoothed+max(least/2, 4*r.variation)), longestTimeout(least))
}

// longestTimeout returns the maximum of timeout.
func longestTimeout(least time.Duration) time.Duration {
	return max(least, min(4*least, mostTimeout))
}
