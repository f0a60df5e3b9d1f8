package pathtest

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/wait"
)

// trafficPort is the port of the pods, trafficEvery the interval of the datagrams.
const (
	trafficPort  = 7004
	trafficEvery = 20 * time.Millisecond
)

// traffic is datagrams from each pod to each pod of the peer, and their answers.
type traffic struct {
	flows []*flow
}

// flow is the traffic from one pod to another. Datagrams are numbered from 1.
type flow struct {
	name           string
	sent, answered atomic.Int64 // counts
	last           atomic.Int64 // highest number that was answered
}

// lost returns how many datagrams were lost so far, once later ones have been answered.
func (k *traffic) lost(t *testing.T) (lost int64) {
	t.Helper()
	for _, f := range k.flows {
		sent := f.sent.Load()
		wait.Succeeds(t, joining, func() error {
			if f.last.Load() <= sent {
				return fmt.Errorf("from %s nothing is answered", f.name)
			}
			return nil
		})
	}
	return k.knownLost()
}

// knownLost returns how many datagrams have no answer although later ones of their flow have. Datagrams in flight do
// not count.
func (k *traffic) knownLost() (lost int64) {
	for _, f := range k.flows {
		answered := f.answered.Load() // first, so that a concurrent answer does not count as lost
		lost += max(f.last.Load()-answered, 0)
	}
	return lost
}

// startTraffic sends until the test ends.
func startTraffic(t *testing.T, a, b *testCluster) *traffic {
	all := &traffic{}
	var ended sync.WaitGroup
	t.Cleanup(ended.Wait) // the port of a closed socket is free once its reader has returned
	for _, way := range [][2]*testCluster{{a, b}, {b, a}} {
		from, to := way[0], way[1]
		for i := range to.pods {
			conn := to.pods[i].For(t).ListenUDP(fmt.Sprint("0.0.0.0:", trafficPort))
			ended.Go(func() { answer(conn, slices.Clone) })
		}
		for i := range from.pods {
			for j := range to.pods {
				f := &flow{name: fmt.Sprintf("%s to %s", from.nodeName(i), to.nodeName(j))}
				all.flows = append(all.flows, f)
				go f.send(t, from.pods[i].For(t).ListenUDP("0.0.0.0:0"), netip.AddrPortFrom(to.remappedPod(j), trafficPort))
			}
		}
	}
	return all
}

func (f *flow) send(t *testing.T, conn net.PacketConn, to netip.AddrPort) {
	go func() {
		for buf := make([]byte, 64); ; f.answered.Add(1) {
			if _, _, err := conn.ReadFrom(buf); err != nil {
				return
			}
			f.last.Store(max(f.last.Load(), int64(binary.BigEndian.Uint64(buf))))
		}
	}()
	every(t.Context(), trafficEvery, func() {
		packet := binary.BigEndian.AppendUint64(nil, uint64(f.sent.Add(1)))
		_, _ = conn.WriteTo(packet, net.UDPAddrFromAddrPort(to)) // a rejected packet is lost
	})
}
