package websocket

import (
	"bytes"
	"testing"
	"time"
)

// sent returns the first bytes of the datagrams in what was taken.
func sent(t *testing.T, b []byte) (first []byte) {
	t.Helper()
	for len(b) > 0 {
		f, n, err := parseFrame(b, false)
		if err != nil || n == 0 {
			t.Fatalf("%d bytes of no frame: %v", len(b), err)
		}
		if f.opcode == opBinary {
			first = append(first, f.payload[0])
		}
		b = b[n:]
	}
	return first
}

func unmasked() uint32 { return 0 }

// TestQueue: frames leave in order, many at once, those that have waited too long not at all, control frames first.
func TestQueue(t *testing.T) {
	now := time.Now()
	q := newQueue(false, unmasked)
	q.add([]byte("1a2b3"), 2, now)
	q.addControl(opPong, []byte("x"))
	b := q.take(nil, now)
	if f, _, _ := parseFrame(b, false); f.opcode != opPong {
		t.Errorf("first: opcode %d", f.opcode)
	}
	if got := sent(t, b); string(got) != "123" {
		t.Errorf("taken: %q", got)
	}
	q.add([]byte("4"), 1, now)
	q.add([]byte("5"), 1, now.Add(oldest))
	if got := sent(t, q.take(nil, now.Add(oldest+time.Millisecond))); string(got) != "5" {
		t.Errorf("taken late: %q", got)
	}
	if b := q.take(nil, now); len(b) != 0 || q.dropped != 1 {
		t.Errorf("%d bytes are left, %d dropped", len(b), q.dropped)
	}
}

// TestQueueIsBounded: whatever waits, memory is bounded, and the newest frames are kept.
func TestQueueIsBounded(t *testing.T) {
	now := time.Now()
	q := newQueue(false, unmasked)
	datagram := bytes.Repeat([]byte{'a'}, 1400)
	for range 100 * queueMost {
		q.add(datagram, len(datagram), now)
	}
	q.add([]byte("z"), 1, now)
	if most := 4 * queueMost * (len(datagram) + maxFrameHeader); cap(q.bytes) > most || len(q.entries) > 4*queueMost {
		t.Errorf("%d bytes, %d entries: want at most %d", cap(q.bytes), len(q.entries), most)
	}
	var got []byte
	for {
		b := q.take(nil, now)
		if len(b) == 0 {
			break
		}
		if len(b) > writeMost+2*len(datagram) {
			t.Errorf("%d bytes at once", len(b))
		}
		got = append(got, sent(t, b)...)
	}
	if len(got) != queueMost || got[len(got)-1] != 'z' {
		t.Errorf("%d frames, the last %q", len(got), got[len(got)-1])
	}
	for range 1000 {
		q.addControl(opPong, make([]byte, maxControl))
	}
	if most := 17 * (maxControl + maxFrameHeader); len(q.control) > most {
		t.Errorf("%d bytes of answers: want at most %d", len(q.control), most)
	}
}
