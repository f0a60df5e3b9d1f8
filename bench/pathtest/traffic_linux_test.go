package pathtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// Parameters of traffic.
const (
	trafficPort = 7004
	floodPort   = 7010
	floodFlows  = 8
	flowEvery   = 20 * time.Millisecond
)

// traffic is flows of datagrams between pods of two clusters, and their answers.
type traffic struct {
	t                *testing.T
	sending          context.Context
	cancel           context.CancelFunc
	senders, readers sync.WaitGroup
	sockets          []io.Closer
	flows            []*flow
}

// flow has the result of each datagram of a flow, by number.
type flow struct {
	name string // nodes of sender and receiver

	mu       sync.Mutex
	answered []bool        // of the sent packets
	first    int           // the first that counts
	last     time.Time     // of the last answer
	silent   time.Duration // longest time without an answer
}

func newTraffic(t *testing.T) *traffic {
	k := &traffic{t: t}
	k.sending, k.cancel = context.WithCancel(context.Background())
	t.Cleanup(k.close)
	return k
}

// startTraffic sends from each pod to each pod of the peer, both ways, until the test ends.
func startTraffic(t *testing.T, a, b *testCluster) *traffic {
	k := newTraffic(t)
	for _, way := range [][2]*testCluster{{a, b}, {b, a}} {
		from, to := way[0], way[1]
		for j := range to.Pods {
			k.serve(to.Pods[j], netip.AddrPortFrom(netip.IPv4Unspecified(), trafficPort))
			for i := range from.Pods {
				k.send(fmt.Sprintf("%s to %s", from.NodeName(i), to.NodeName(j)), from.Pods[i], netip.AddrPortFrom(to.RemappedPod(j), trafficPort))
			}
		}
	}
	return k
}

// startFlood sends from the pods of a cluster to those of another, in flows between several addresses, until stop is
// called.
func startFlood(from, to *testCluster) *traffic {
	k := newTraffic(from.t)
	for i := range floodFlows {
		node, number := i%nodesPerCluster, byte(100+i)
		address, seen := clusters.InPods(node, number), to.RemappedPod(node).As4()
		to.Pods[node].IP(fmt.Sprintf("addr replace %s/32 dev eth0", address))
		k.serve(to.Pods[node], netip.AddrPortFrom(address, floodPort))
		seen[3] = number
		k.send(fmt.Sprint("flow ", i), from.Pods[i/2%nodesPerCluster], netip.AddrPortFrom(netip.AddrFrom4(seen), floodPort))
	}
	k.await(from.t)
	for _, f := range k.flows { // earlier packets do not count
		f.mu.Lock()
		f.first, f.silent = len(f.answered), 0
		f.mu.Unlock()
	}
	return k
}

// serve answers at an address of a pod.
func (k *traffic) serve(pod netns.Namespace, at netip.AddrPort) {
	server := pod.For(k.t).ListenUDP(at.String())
	k.sockets = append(k.sockets, server)
	k.readers.Go(func() { netns.Answer(server, netns.Echo) })
}

// send begins a flow.
func (k *traffic) send(name string, from netns.Namespace, to netip.AddrPort) {
	f, conn := &flow{name: name}, dialIn(k.t, from, "udp4", to)
	k.flows, k.sockets = append(k.flows, f), append(k.sockets, conn)
	k.readers.Go(func() { f.receive(conn) })
	k.senders.Go(func() {
		every(k.sending, flowEvery, func() { _, _ = conn.Write(f.next()) }) // a rejected packet is lost
	})
}

// next returns the next datagram, which is its number.
func (f *flow) next() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered = append(f.answered, false)
	return binary.BigEndian.AppendUint64(nil, uint64(len(f.answered)-1))
}

func (f *flow) receive(conn net.Conn) {
	for b := make([]byte, 100); ; {
		n, err := conn.Read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n != 8 {
			continue // an ICMP error
		}
		f.mu.Lock()
		if number := binary.BigEndian.Uint64(b); number < uint64(len(f.answered)) {
			f.answered[number] = true
		}
		if !f.last.IsZero() {
			f.silent = max(f.silent, time.Since(f.last))
		}
		f.last = time.Now()
		f.mu.Unlock()
	}
}

// results returns a copy of what is known of each datagram.
func (f *flow) results() []bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.answered)
}

// count is the number of sent and answered packets.
type count struct{ sent, answered int }

func (c count) lost() int           { return c.sent - c.answered }
func (c count) plus(o count) count  { return count{c.sent + o.sent, c.answered + o.answered} }
func (c count) minus(o count) count { return count{c.sent - o.sent, c.answered - o.answered} }

func countOf(results []bool) (c count) {
	for _, is := range results {
		c.sent++
		if is {
			c.answered++
		}
	}
	return c
}

// count returns the count of packets from and to the pod of a node; "": any.
func (k *traffic) count(node string) (all count) {
	for _, f := range k.of(node) {
		all = all.plus(countOf(f.results()[f.first:]))
	}
	return all
}

// of returns the flows from and to the pod of a node; "": all.
func (k *traffic) of(node string) []*flow {
	return slices.DeleteFunc(slices.Clone(k.flows), func(f *flow) bool {
		return node != "" && !strings.HasPrefix(f.name, node+" ") && !strings.HasSuffix(f.name, " "+node)
	})
}

// during returns the count of packets that are sent in a while from and to the pod of a node. It waits until later ones
// are answered: on a busy machine, half a second of packets is in flight.
func (k *traffic) during(t *testing.T, node string, while time.Duration) (all count) {
	t.Helper()
	flows := k.of(node)
	sent := func() (all []int) {
		for _, f := range flows {
			all = append(all, len(f.results()))
		}
		return all
	}
	begin := sent()
	<-time.After(while)
	end := sent()
	for i, f := range flows {
		wait.Until(t, "an answer from "+f.name, joining, func() bool { return len(untilAnswered(f.results())) > end[i] })
		all = all.plus(countOf(f.results()[begin[i]:end[i]]))
	}
	return all
}

// knownLost returns how many datagrams have no answer although later ones of their flow have. Datagrams in flight do
// not count.
func (k *traffic) knownLost() (lost int) {
	for _, f := range k.flows {
		lost += countOf(untilAnswered(f.results())).lost()
	}
	return lost
}

// untilAnswered returns the results up to that of the last answered datagram.
func untilAnswered(results []bool) []bool {
	for len(results) > 0 && !results[len(results)-1] {
		results = results[:len(results)-1]
	}
	return results
}

// lost returns how many datagrams were lost so far, once later ones have been answered.
func (k *traffic) lost(t *testing.T) int {
	t.Helper()
	for _, f := range k.flows {
		sent := len(f.results())
		wait.Until(t, "an answer from "+f.name, joining, func() bool { return len(untilAnswered(f.results())) > sent })
	}
	return k.knownLost()
}

// await waits until each flow has enough consecutive answers to packets sent from now on to exclude a fault.
func (k *traffic) await(t *testing.T) {
	t.Helper()
	const row, young = 100, 5 // the last few may be in flight
	begin := map[*flow]int{}
	for _, f := range k.flows {
		begin[f] = len(f.results())
	}
	wait.Succeeds(t, joining, func() error {
		for _, f := range k.flows {
			results := f.results()
			if latest := results[:max(len(results)-young, 0)]; len(latest) < begin[f]+row || slices.Contains(latest[len(latest)-row:], false) {
				return fmt.Errorf("not %d answers in a row of %s", row, f.name)
			}
		}
		return nil
	})
}

// lastAnswers is the timeout of the last answers, on a busy machine.
const lastAnswers = 5 * time.Second

// stop stops sending, and returns the lost and the sent packets, and the longest time in which a flow got no answer.
func (k *traffic) stop() (lost, sent int, silent time.Duration) {
	k.cancel()
	k.senders.Wait()
	tick := time.NewTicker(flowEvery)
	defer tick.Stop()
	for end := time.Now().Add(lastAnswers); time.Now().Before(end); <-tick.C {
		if !slices.ContainsFunc(k.flows, func(f *flow) bool { r := f.results(); return len(untilAnswered(r)) < len(r) }) {
			break
		}
	}
	k.close()
	for _, f := range k.flows {
		silent = max(silent, f.silent)
	}
	all := k.count("")
	return all.lost(), all.sent, silent
}

func (k *traffic) close() {
	k.cancel()
	k.senders.Wait()
	for _, s := range k.sockets {
		_ = s.Close()
	}
	k.readers.Wait() // the port of a closed socket is free then
}

// dialIn opens a connection from a namespace, such as one of network "udp4".
func dialIn(t *testing.T, ns netns.Namespace, network string, to netip.AddrPort) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), joining)
	defer cancel()
	conn, err := ns.Dial(ctx, network, to)
	require.NoError(t, err)
	return conn
}

// every calls a function at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}
