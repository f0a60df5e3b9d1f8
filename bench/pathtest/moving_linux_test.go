package pathtest

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

const (
	moves       = 12 // per round
	moverRounds = 6  // at most: on a busy machine, a round can be slow
	moverPort   = 7002
	moverEvery  = time.Millisecond
	// Limit for the median time from status.podIP to the first answer over all moves; it is 20 ms on an idle machine.
	moverAtMost = 100 * time.Millisecond
	// Accepted delay of the median as a multiple of the machine's scheduling delay.
	moverLate    = 10
	moverPodName = "mover"
)

// The address lies in the pod CIDR, but in no node's podCIDR.
var (
	moverAddress = netip.MustParseAddr("10.244.77.5")
	seenMover    = netip.MustParseAddr("10.11.77.5")
)

// TestPodsThatMove checks that a pod with an address outside its node's podCIDR, as with Calico, is reachable from the
// peer soon after the API server has its address, on any node, and that its route is removed when it is deleted.
func TestPodsThatMove(t *testing.T) {
	t.Parallel()
	a, b := connected(t)
	for i := range a.Nodes {
		a.addMover(i)
	}
	m := watchMover(t, a)
	p := startProbing(t, b.Pods[1])
	atMost := moverAtMost
	if testing.Short() {
		atMost *= 10 // in a guest every system call takes longer
	}
	for range moverRounds {
		late := lateness()
		if moveAround(a, m, p) <= atMost+moverLate*late() {
			return
		}
	}
	t.Errorf("the median was never %v at most, and what the machine was late", atMost)
}

// moveAround moves the pod several times, and returns the median of the times from its address in the API to the first
// answer.
func moveAround(c *testCluster, m moverWatch, p *probing) time.Duration {
	c.t.Helper()
	var took []time.Duration
	for i := range moves {
		node := c.NodeName(i % nodesPerCluster)
		c.placeMover(node)
		took = append(took, p.answerOf(node).Sub(m.next()))
		c.removeMover()
		p.reset()
	}
	slices.Sort(took)
	c.t.Logf("from status.podIP to the first answer: median %v, most %v of %v", took[moves/2], took[moves-1], took)
	return took[moves/2]
}

// addMover creates the pod on a node, before the API has it, and answers with the node's name.
func (c *testCluster) addMover(node int) {
	conn := c.Node(node).RoutedPod("mover", moverAddress).ListenUDP(fmt.Sprint("0.0.0.0:", moverPort))
	go netns.Answer(conn, func([]byte, netip.AddrPort) []byte { return []byte(c.NodeName(node)) })
}

// placeMover creates the pod in the API: bound to a node, then with its address, like the kubelet.
func (c *testCluster) placeMover(node string) {
	c.t.Helper()
	pods := c.API.CoreV1().Pods(metav1.NamespaceDefault)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: moverPodName, Namespace: metav1.NamespaceDefault}, Spec: corev1.PodSpec{NodeName: node}}
	pod, err := pods.Create(c.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(c.t, err)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: moverAddress.String(), PodIPs: []corev1.PodIP{{IP: moverAddress.String()}},
	}
	_, err = pods.UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

// removeMover deletes the pod and waits until the gateway has no route to it.
func (c *testCluster) removeMover() {
	c.t.Helper()
	require.NoError(c.t, c.API.CoreV1().Pods(metav1.NamespaceDefault).Delete(c.t.Context(), moverPodName, metav1.DeleteOptions{}))
	wait.Succeeds(c.t, joining, func() error {
		if routes := c.Gateways[0].Run("ip", "route", "show", "table", "all"); strings.Contains(routes, moverAddress.String()) {
			return fmt.Errorf("the gateway has a route to %s, which is no pod any more:\n%s", moverAddress, routes)
		}
		return nil
	})
}

// moverWatch records when the API server had the pod's address.
type moverWatch struct {
	t    *testing.T
	seen chan time.Time
}

func watchMover(t *testing.T, c *testCluster) moverWatch {
	t.Helper()
	w, err := c.API.CoreV1().Pods(metav1.NamespaceDefault).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	m := moverWatch{t, make(chan time.Time, moves)}
	go func() {
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok && e.Type == "MODIFIED" && pod.Status.PodIP != "" {
				m.seen <- time.Now()
			}
		}
	}()
	return m
}

// next returns when the pod's address appeared the next time.
func (m moverWatch) next() time.Time {
	m.t.Helper()
	select {
	case at := <-m.seen:
		return at
	case <-time.After(joining):
		m.t.Fatal("the API server has no address of the pod")
		return time.Time{}
	}
}

// probing queries the pod continuously from a pod of the peer.
type probing struct {
	t     *testing.T
	mu    sync.Mutex
	first map[string]time.Time // by node: the first answer since reset
}

func startProbing(t *testing.T, from netns.Namespace) *probing {
	t.Helper()
	p := &probing{t: t, first: map[string]time.Time{}}
	conn := from.For(t).ListenUDP("0.0.0.0:0")
	go func() {
		buf := make([]byte, 64)
		for {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			p.mu.Lock()
			if _, ok := p.first[string(buf[:n])]; !ok {
				p.first[string(buf[:n])] = time.Now()
			}
			p.mu.Unlock()
		}
	}()
	target := net.UDPAddrFromAddrPort(netip.AddrPortFrom(seenMover, moverPort))
	go every(t.Context(), moverEvery, func() {
		_, _ = conn.WriteTo([]byte("where"), target) // unreachable most of the time
	})
	return p
}

// answerOf waits for the first answer from a node since reset.
func (p *probing) answerOf(node string) (at time.Time) {
	p.t.Helper()
	wait.Succeeds(p.t, joining, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		var ok bool
		if at, ok = p.first[node]; !ok {
			return fmt.Errorf("no answer from the pod on %s", node)
		}
		return nil
	})
	return at
}

// reset makes the next answers count as the first ones.
func (p *probing) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.first)
}
