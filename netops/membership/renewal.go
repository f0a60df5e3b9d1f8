package membership

import "time"

// Times of a renewal.
const (
	// RenewAfter is the time without any packet from the peer after which the tunnel is renewed: neither echo nor
	// answer, nor any byte that WireGuard accepted. It is also the pause before the second renewal.
	RenewAfter = 2 * time.Second
	// RenewPause is the longest pause between renewals; each is twice the previous one. If a round trip takes longer
	// than a pause, no handshake completes. A longer pause would show a peering as down for more than five seconds
	// after its path is back, because a new session waits for the next handshake.
	RenewPause = 4 * time.Second
	// FirstPause is the least time before and between renewals of a client that has never received a packet: the
	// server's gateway may be starting, and WireGuard repeats a handshake after five seconds only.
	FirstPause = 500 * time.Millisecond
)

// Renewal decides when the session of a tunnel is renewed. A renewal discards the session, so loss or delay alone must
// not cause one, nor a peer's helper that is away while its kernel forwards: any packet counts. The zero value has
// asked nothing and is never due.
type Renewal struct {
	last     time.Time     // last packet, else the first request to the peer
	received int64         // bytes, by the device's counter
	read     time.Time     // when received was read
	next     time.Time     // no renewal before this time; zero: none since the last packet
	pause    time.Duration // until next
	began    time.Time     // first request of a client that has received nothing since; zero: none
}

// Received handles a message of the peer, or the first request to it.
func (r *Renewal) Received(now time.Time) {
	*r = Renewal{last: now, received: r.received, read: r.read}
}

// Began handles the first request of a client. Pauses grow with the time since then, so that a handshake with a long
// round trip completes as well.
func (r *Renewal) Began(now time.Time) {
	r.Received(now)
	r.began = now
}

// Counted handles the number of bytes received from the peer. A growing number means that packets arrived since it was
// last read.
func (r *Renewal) Counted(bytes int64, now time.Time) {
	if bytes > r.received && r.read.After(r.last) {
		r.Received(r.read)
	}
	r.received, r.read = bytes, now
}

// Silence returns the time since the last packet, or the first request; zero: there was none.
func (r *Renewal) Silence(now time.Time) time.Duration {
	if r.last.IsZero() {
		return 0
	}
	return now.Sub(r.last)
}

// Due reports whether the tunnel is to be renewed now, and begins the pause until the next renewal if it is.
func (r *Renewal) Due(now time.Time) bool {
	after, pause := RenewAfter, max(2*r.pause, RenewAfter)
	if !r.began.IsZero() && r.received == 0 {
		after, pause = FirstPause, max(now.Sub(r.began)/2, FirstPause)
	}
	if r.last.IsZero() || now.Before(r.next) || now.Sub(r.last) < after {
		return false
	}
	r.pause = min(pause, RenewPause)
	r.next = now.Add(r.pause)
	return true
}
