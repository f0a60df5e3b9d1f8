package pathtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/netns"
)

// A mark is the phase of a test in which a packet was sent. It fills the packet, so that an excerpt is recognised too.
const (
	markBefore  = "BEFORE-THE-PEERING;" // before the sender's node has the peering
	markSecret  = "BETWEEN-THE-PODS;"   // while the peering exists
	markLeaving = "PEERING-IS-ENDING;"  // from the beginning of its removal
)

const (
	talkPort  = 7001
	talkEvery = 50 * time.Millisecond
	markTimes = 20
	// keptBy follows the marks of a packet from a socket that its talker opened at the beginning, and precedes the
	// talker's name.
	keptBy = " KEPT BY "
)

// markIn returns the mark in a packet; "": none.
func markIn(packet []byte) string {
	for _, mark := range []string{markBefore, markSecret, markLeaving} {
		if bytes.Contains(packet, []byte(mark)) {
			return mark
		}
	}
	return ""
}

// talker sends datagrams to all pods of the peer, from a pod or a node, until the test ends: over permanent sockets,
// and over a new one each time.
type talker struct {
	netns.Namespace
	name    string
	targets []netip.Addr
	rounds  atomic.Int64

	mu   sync.Mutex // held for a round
	mark string     // "": it sends nothing
}

// setMark sets the mark of the packets. When it returns, no packet with the previous mark is sent any more.
func (k *talker) setMark(mark string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mark = mark
}

func (k *talker) silent() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mark == ""
}

func startTalker(t *testing.T, ns netns.Namespace, name string, targets []netip.Addr) *talker {
	k := &talker{Namespace: ns, name: name, targets: targets, mark: markBefore}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ns.Do(func() error { return k.talk(ctx) }) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	return k
}

// talk runs on a thread in the namespace.
func (k *talker) talk(ctx context.Context) error {
	open := func(target netip.Addr) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", netip.AddrPortFrom(target, talkPort).String())
	}
	var kept []net.Conn
	defer func() {
		for _, c := range kept {
			_ = c.Close()
		}
	}()
	for _, target := range k.targets {
		c, err := open(target)
		if err != nil {
			return err
		}
		kept = append(kept, c)
	}
	every(ctx, talkEvery, func() { k.round(open, kept) })
	return nil
}

// round sends to each target over its permanent socket, and to one of them over a new one.
func (k *talker) round(open func(netip.Addr) (net.Conn, error), kept []net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mark == "" {
		return
	}
	payload := bytes.Repeat([]byte(k.mark), markTimes)
	old := append(bytes.Clone(payload), keptBy+k.name...)
	for _, c := range kept {
		_, _ = c.Write(old) // a rejected packet is not sent
	}
	if c, err := open(k.targets[int(k.rounds.Add(1))%len(k.targets)]); err == nil {
		_, _ = c.Write(payload)
		_ = c.Close()
	}
}

// listeners count received packets with a mark at each pod.
type listeners struct {
	mu       sync.Mutex
	received map[string]map[string]int  // by mark and pod
	kept     map[string]map[string]bool // by pod: talkers whose packets came over a socket from before the peering
}

func startListeners(t *testing.T, clusters ...*testCluster) *listeners {
	l := &listeners{received: map[string]map[string]int{}, kept: map[string]map[string]bool{}}
	for _, c := range clusters {
		for i, pod := range c.Pods {
			go l.listen(pod.For(t).ListenUDP(fmt.Sprint("0.0.0.0:", talkPort)), c.NodeName(i))
		}
	}
	return l
}

func (l *listeners) listen(conn net.PacketConn, pod string) {
	for buf := make([]byte, 2000); ; {
		n, _, err := conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if mark := markIn(buf[:n]); mark != "" {
			l.mu.Lock()
			if l.received[mark] == nil {
				l.received[mark] = map[string]int{}
			}
			l.received[mark][pod]++
			if _, who, ok := bytes.Cut(buf[:n], []byte(keptBy)); ok && mark == markSecret {
				if l.kept[pod] == nil {
					l.kept[pod] = map[string]bool{}
				}
				l.kept[pod][string(who)] = true
			}
			l.mu.Unlock()
		}
	}
}

// count returns how many packets with a mark each pod has received.
func (l *listeners) count(mark string) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.received[mark])
}

// hasKept reports whether a pod has received packets of a talker, during the peering, over a socket from before it.
func (l *listeners) hasKept(pod, talker string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept[pod][talker]
}
