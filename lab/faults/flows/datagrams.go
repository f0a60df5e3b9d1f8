package flows

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// size of a datagram. The echo overwrites its beginning with its identity, and keeps the last eight bytes: the number
// of the datagram.
const size = 256

// datagrams are sent to one host, one every ten milliseconds, whether or not earlier ones were answered.
type datagrams struct {
	conn net.Conn

	mu       sync.Mutex
	sent     []time.Time // by number
	outcomes []outcome
	first    int // of the next lap
}

// outcome of a datagram. The zero value: not answered.
type outcome int

const (
	unanswered outcome = iota
	late               // answered, but not within answerWithin
	answered
)

func openDatagrams(ctx context.Context, host string) (*datagrams, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "udp4", net.JoinHostPort(host, echoPort))
	return &datagrams{conn: conn}, err
}

// run sends until ctx ends, and then reads late answers.
func (d *datagrams) run(ctx context.Context) {
	var reading sync.WaitGroup
	reading.Go(d.read)
	tick := time.NewTicker(every)
	defer tick.Stop()
	packet := make([]byte, size)
	for ctx.Err() == nil {
		d.mu.Lock()
		binary.BigEndian.PutUint64(packet[size-8:], uint64(len(d.sent)))
		d.sent, d.outcomes = append(d.sent, time.Now()), append(d.outcomes, unanswered)
		d.mu.Unlock()
		_, _ = d.conn.Write(packet) // an error, such as of a missing route, is a lost datagram
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	_ = d.conn.SetReadDeadline(time.Now().Add(answerWithin))
	reading.Wait()
}

// read records answers until the deadline that run sets.
func (d *datagrams) read() {
	buf := make([]byte, size)
	for {
		n, err := d.conn.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
			return
		case err != nil || n != size: // an ICMP error, which the socket reports once
			continue
		}
		number := binary.BigEndian.Uint64(buf[size-8:])
		d.mu.Lock()
		switch {
		case number >= uint64(len(d.sent)):
		case time.Since(d.sent[number]) < answerWithin:
			d.outcomes[number] = answered
		default:
			d.outcomes[number] = max(d.outcomes[number], late)
		}
		d.mu.Unlock()
	}
}

// count returns the number of datagrams that were sent.
func (d *datagrams) count() int { return d.before(time.Now()) }

// before returns the number of datagrams that were sent before a time.
func (d *datagrams) before(t time.Time) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, _ := slices.BinarySearchFunc(d.sent, t, time.Time.Compare)
	return n
}

// lap counts datagrams since the last lap up to a number, and finds the times in which none of them was answered.
func (d *datagrams) lap(r *Result, end int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := d.first
	d.first = max(first, end)
	r.Sent = d.first - first
	last := first - 1 // that was answered, or is not of this lap
	until := func(next int) {
		lost := next - last - 1
		if lost == 0 {
			return
		}
		r.Lost += lost
		r.Without = max(r.Without, d.sent[min(next, d.first-1)].Sub(d.sent[max(last, 0)]))
		if len(r.Losses) < lossesMost {
			r.Losses = append(r.Losses, Loss{d.sent[last+1], lost})
		}
	}
	for i := first; i < d.first; i++ {
		if i > 0 {
			r.Stalled = max(r.Stalled, d.sent[i].Sub(d.sent[i-1]))
		}
		switch d.outcomes[i] {
		case unanswered:
			r.Gone++
		case answered:
			until(i)
			last = i
		}
	}
	until(d.first)
}
