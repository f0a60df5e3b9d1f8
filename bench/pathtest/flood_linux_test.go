package pathtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/wait"
)

// Parameters of a flood.
const (
	floodPort  = 7010
	floodFlows = 8
	floodEvery = 20 * time.Millisecond // per flow
)

// flood is packets between pods of two clusters, in flows between several addresses, and their answers. It counts lost
// packets.
type flood struct {
	cancel  context.CancelFunc
	senders sync.WaitGroup
	servers []net.PacketConn
	clients []net.Conn

	mu    sync.Mutex
	flows [floodFlows]floodFlow
}

// floodFlow has the result of each packet of a flow, by number.
type floodFlow struct {
	answered []bool        // of the sent packets
	first    int           // the first that counts
	last     time.Time     // of the last answer
	silent   time.Duration // longest time without an answer
}

// startFlood sends from the pods of a cluster to those of another until stop is called.
func startFlood(from, to *testCluster) *flood {
	t := from.t
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &flood{cancel: cancel}
	t.Cleanup(f.close)
	for i := range f.flows {
		node, number := i%nodesPerCluster, byte(100+i)
		f.serve(t, to, node, number)
		seen := to.remappedPod(node).As4()
		seen[3] = number
		conn := dialIn(from.pods[i/2%nodesPerCluster], "udp4", netip.AddrPortFrom(netip.AddrFrom4(seen), floodPort))
		f.clients = append(f.clients, conn)
		f.senders.Go(func() { f.send(ctx, i, conn) })
		go f.receive(i, conn)
	}
	f.await(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.flows { // earlier packets do not count
		f.flows[i].first, f.flows[i].silent = len(f.flows[i].answered), 0
	}
	return f
}

// serve answers at an address of a pod.
func (f *flood) serve(t *testing.T, c *testCluster, node int, number byte) {
	t.Helper()
	address := inPods(node, number)
	ip(c.pods[node], fmt.Sprintf("addr replace %s/32 dev eth0", address))
	c.pods[node].For(t).Inside(func() error {
		server, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp4", netip.AddrPortFrom(address, floodPort).String())
		if err == nil {
			f.servers = append(f.servers, server)
			go answer(server, slices.Clone)
		}
		return err
	})
}

func (f *flood) send(ctx context.Context, flow int, conn net.Conn) {
	every(ctx, floodEvery, func() {
		f.mu.Lock()
		own := &f.flows[flow]
		number := uint64(len(own.answered))
		own.answered = append(own.answered, false)
		f.mu.Unlock()
		_, _ = conn.Write(binary.BigEndian.AppendUint64(nil, number)) // a rejected packet is lost
	})
}

func (f *flood) receive(flow int, conn net.Conn) {
	for b := make([]byte, 100); ; {
		n, err := conn.Read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n != 8 {
			continue // an ICMP error
		}
		f.mu.Lock()
		own := &f.flows[flow]
		if number := binary.BigEndian.Uint64(b); number < uint64(len(own.answered)) {
			own.answered[number] = true
		}
		if !own.last.IsZero() {
			own.silent = max(own.silent, time.Since(own.last))
		}
		own.last = time.Now()
		f.mu.Unlock()
	}
}

// await waits until each flow has enough consecutive answers to packets sent from now on to exclude a fault.
func (f *flood) await(t *testing.T) {
	t.Helper()
	const row, young = 100, 5 // the last few may be in flight
	var begin [floodFlows]int
	f.mu.Lock()
	for i, own := range f.flows {
		begin[i] = len(own.answered)
	}
	f.mu.Unlock()
	wait.Succeeds(t, joining, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, own := range f.flows {
			latest := own.answered[:max(len(own.answered)-young, 0)]
			if len(latest) < begin[i]+row {
				return fmt.Errorf("flow %d has sent few packets", i)
			}
			if slices.Contains(latest[len(latest)-row:], false) {
				return fmt.Errorf("packets of flow %d are lost", i)
			}
		}
		return nil
	})
}

// stop stops sending, and returns the lost and the sent packets, and the longest time in which a flow got no answer.
func (f *flood) stop() (lost, sent int, silent time.Duration) {
	f.cancel()
	f.senders.Wait()
	f.awaitLast()
	f.close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, own := range f.flows {
		for _, is := range own.answered[own.first:] {
			sent++
			if !is {
				lost++
			}
		}
		silent = max(silent, own.silent)
	}
	return lost, sent, silent
}

// lastAnswers is the timeout of the last answers, on a busy machine.
const lastAnswers = 5 * time.Second

// awaitLast waits until the last packet of each flow is answered, unless it is lost.
func (f *flood) awaitLast() {
	tick := time.NewTicker(floodEvery)
	defer tick.Stop()
	for end := time.Now().Add(lastAnswers); time.Now().Before(end); <-tick.C {
		f.mu.Lock()
		waiting := slices.ContainsFunc(f.flows[:], func(own floodFlow) bool { return !own.answered[len(own.answered)-1] })
		f.mu.Unlock()
		if !waiting {
			return
		}
	}
}

func (f *flood) close() {
	f.cancel()
	f.senders.Wait()
	for _, c := range f.servers {
		_ = c.Close()
	}
	for _, c := range f.clients {
		_ = c.Close()
	}
}
