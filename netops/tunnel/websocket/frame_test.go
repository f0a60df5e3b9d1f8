package websocket

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// TestFrames: what one end appends, the other end parses, in pieces of any size.
func TestFrames(t *testing.T) {
	for _, masked := range []bool{false, true} {
		var sent [][]byte
		var wire []byte
		for _, size := range []int{0, 1, 7, 8, 125, 126, 127, 1420, 9000, maxDatagram} {
			payload := make([]byte, size)
			for i := range payload {
				payload[i] = byte(rand.Uint32())
			}
			sent = append(sent, payload)
			wire = appendFrame(wire, opBinary, payload, masked, rand.Uint32())
		}
		if longest := maxFrameHeader + maxDatagram; len(appendFrame(nil, opBinary, sent[len(sent)-1], masked, 1)) > longest {
			t.Errorf("a frame is longer than %d", longest)
		}
		for i, want := range sent {
			for cut := range min(len(want), 200) {
				if f, n, err := parseFrame(bytes.Clone(wire[:cut]), masked); n != 0 && i > 0 || err != nil {
					t.Fatalf("a part of a frame: %+v, %d, %v", f, n, err)
				}
			}
			f, n, err := parseFrame(wire, masked)
			if err != nil || f.opcode != opBinary || !f.final || !bytes.Equal(f.payload, want) {
				t.Fatalf("masked %t, %d bytes: opcode %d, %d bytes, %v", masked, len(want), f.opcode, len(f.payload), err)
			}
			wire = wire[n:]
		}
	}
}

// TestFramesRefused: what no gateway sends ends the connection.
func TestFramesRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"bits of an extension": {finalBit | 0x40 | opBinary, 0},
		"not masked":           {finalBit | opBinary, 1, 'a'},
		"length of 64 bits":    {finalBit | opBinary, maskBit | 127},
		"more than a datagram": {finalBit | opBinary, maskBit | 126, 0xff, 0xff},
		"long ping":            {finalBit | opPing, maskBit | 126},
		"piece of a ping":      {opPing, maskBit | 1},
	} {
		masked := name != "masked"
		if _, _, err := parseFrame(b, masked); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := parseFrame([]byte{finalBit | opBinary, maskBit | 1}, false); !errors.Is(err, errFrame) {
		t.Errorf("a server that masks: %v", err)
	}
}

// FuzzFrame: no input makes a reader take more than a datagram, or fail to go on.
func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, opBinary, []byte("datagram"), true, 1), true)
	f.Add(appendFrame(appendFrame(nil, opPing, nil, false, 0), opClose, []byte{3, 232}, false, 0), false)
	f.Fuzz(func(t *testing.T, b []byte, masked bool) {
		var out run
		most := 0
		out.deliver = func(b []byte, size int) {
			if most += len(b); size <= 0 || size > maxDatagram || len(b) > runMost+maxDatagram {
				t.Errorf("%d bytes in datagrams of %d", len(b), size)
			}
		}
		c := newConn(nil, nil, !masked)
		c.allow = func(uint64) {}
		r := reader{conn: c, run: out}
		for rest := bytes.Clone(b); ; {
			f, n, err := parseFrame(rest, masked)
			if n < 0 || n > len(rest) || err != nil && n != 0 {
				t.Fatalf("%d of %d bytes, %v", n, len(rest), err)
			}
			if n == 0 || r.handle(f) != nil {
				break
			}
			rest = rest[n:]
		}
		r.run.flush()
		if most > len(b) || len(c.queue.control) > 16*maxControl+maxFrameHeader+maxControl {
			t.Errorf("%d bytes delivered of %d, %d bytes of answers", most, len(b), len(c.queue.control))
		}
	})
}
