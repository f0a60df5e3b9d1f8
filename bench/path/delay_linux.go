package path

import (
	"errors"
	"sync"
	"time"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/tun"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
)

// wire connects two nodes by their eth0: with a veth pair, or, for a delay, with two TUN devices and a relay in this
// process, as not every kernel has netem.
func (b *Bed) wire(x, y netns.Namespace) {
	if b.Delay == 0 {
		x.Link("eth0", y, "eth0", 0)
		return
	}
	var ends [2]tun.Device
	for i, n := range []netns.Namespace{x, y} {
		n.Inside(func() (err error) {
			ends[i], err = tun.CreateTUN("eth0", clusters.LinkMTU)
			return err
		})
		n.IP("link set eth0 txqueuelen 10000") // no packets are lost
		go func() {
			for range ends[i].Events() { // unread events block Close
			}
		}()
	}
	var relays sync.WaitGroup
	b.t.Cleanup(func() {
		assert.NoError(b.t, errors.Join(ends[0].Close(), ends[1].Close()))
		relays.Wait()
	})
	for i := range ends {
		r := relay{from: ends[i], to: ends[1-i], delay: b.Delay, late: make(chan batch, lateBatches)}
		relays.Go(r.receive)
		relays.Go(r.send)
	}
}

const (
	lateBatches = 1 << 12 // on the line at once; more are lost
	wireOffset  = 16      // bytes before a packet, for the header that a TUN device adds
)

// relay is one direction of a line.
type relay struct {
	from, to tun.Device
	delay    time.Duration
	late     chan batch
}

// batch is packets that arrived together, each after wireOffset bytes.
type batch struct {
	due     time.Time
	packets [][]byte
}

// receive reads packets until the device is closed.
func (r relay) receive() {
	defer close(r.late)
	buffers, sizes := make([][]byte, conn.IdealBatchSize), make([]int, conn.IdealBatchSize)
	for i := range buffers {
		buffers[i] = make([]byte, wireOffset+1<<16)
	}
	for {
		n, err := r.from.Read(buffers, sizes, wireOffset)
		if err != nil && !errors.Is(err, tun.ErrTooManySegments) {
			return
		}
		b, room := batch{due: time.Now().Add(r.delay)}, wireOffset
		for _, size := range sizes[:n] {
			room += size
		}
		for i, size := range sizes[:n] {
			b.packets = append(b.packets, append(make([]byte, 0, room), buffers[i][:wireOffset+size]...))
			room = wireOffset // the other device merges packets of a flow in the room of the first one
		}
		select {
		case r.late <- b:
		default:
		}
	}
}

// send writes packets when they are due.
func (r relay) send() {
	for b := range r.late {
		<-time.After(time.Until(b.due))
		_, _ = r.to.Write(b.packets, wireOffset) // packets without buffer space are lost
	}
}
