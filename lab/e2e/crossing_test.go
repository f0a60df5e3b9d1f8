package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/capture"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// podPayload is the content of packets between pods, which identifies them in a capture.
const podPayload = "BETWEEN-THE-PODS;"

// stage determines whether packets that match no rule are allowed.
type stage int

const (
	disconnected  stage = iota // there is no liqonet state: allowed
	connected                  // not allowed
	joining                    // allowed only if they are echoes and probes of the overlay
	nodePorts                  // allowed only between nodes and hosts outside: for NodePorts, or exposed by b
	disconnecting              // allowed only from nodes without liqonet state
)

// crossing captures packets at the lab's router, which all packets between clusters, or to the outside, pass. Each must
// match a rule.
type crossing struct {
	lab     *lab.Lab
	rules   []crossingRule
	nodes   []netip.Prefix // networks of nodes
	capture *capture.Capture
	bare    map[[6]byte]bool // hardware addresses of nodes without liqonet

	mu    sync.Mutex // of what follows
	stage stage
	ruled map[string]int // packets, by the rule that they match
	clear []string       // packets that should not have been seen
	free  map[string]int // by link: packets with podPayload from nodes without liqonet
}

// startCrossing captures until the test ends. Packets that match one of more are allowed, too.
func startCrossing(ctx context.Context, t *testing.T, l *lab.Lab, declared spec.Spec, more ...crossingRule) *crossing {
	t.Helper()
	status, err := l.Status(ctx)
	require.NoError(t, err)
	x := &crossing{
		lab: l, rules: append(crossingRules(declared), more...), bare: map[[6]byte]bool{}, ruled: map[string]int{}, free: map[string]int{},
	}
	links := []string{outsideLink}
	for _, c := range declared.Clusters {
		links, x.nodes = append(links, linkOf(c)), append(x.nodes, c.NodeNetwork)
	}
	x.capture, err = capture.Start(status.Places["router"].Net, links, func(p capture.Packet) { x.check(ctx, p) })
	require.NoError(t, err)
	t.Cleanup(func() {
		counts, err := x.capture.Close()
		if err != nil || counts.Missed > 0 {
			t.Errorf("capture at the router: %d of %d packets were missed, %v", counts.Missed, counts.Seen, err)
		}
	})
	return x
}

// check checks one packet against the rules.
func (x *crossing) check(ctx context.Context, p capture.Packet) {
	if rule := matching(x.rules, p); rule != "" {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.ruled[rule]++
		return
	}
	x.mu.Lock()
	stage := x.stage
	x.mu.Unlock()
	why := ""
	switch {
	case stage == connected, stage == joining && !overlayAlone(p), stage == nodePorts && !x.withOutside(p):
		why = "while the clusters are connected"
	case stage == disconnecting && !x.bare[p.Sender]:
		why = x.stateAt(ctx, p.Sender)
		x.bare[p.Sender] = why == ""
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case why != "":
		x.clear = append(x.clear, fmt.Sprintf("%s, %s", p, why))
	case bytes.Contains(p.Frame, []byte(podPayload)):
		x.free[p.Link]++
	}
}

// overlayAlone reports whether a packet is one of the overlay (docs/requirements.md, Ports) without payload of pods, or
// an ICMP error about one.
func overlayAlone(p capture.Packet) bool {
	if p.Quoted != nil {
		return overlayAlone(*p.Quoted)
	}
	return p.Protocol == capture.UDP && !p.Fragment && (p.TargetPort == 6091 || p.TargetPort == 6092) && !talk(p)
}

// withOutside reports whether a packet goes between a node and a host outside.
func (x *crossing) withOutside(p capture.Packet) bool {
	return x.ofNode(p.Source) && slices.Contains(spec.OutsideHosts(), p.Target) || slices.Contains(spec.OutsideHosts(), p.Source) && x.ofNode(p.Target)
}

func (x *crossing) ofNode(a netip.Addr) bool {
	return slices.ContainsFunc(x.nodes, func(n netip.Prefix) bool { return n.Contains(a) })
}

// stateAt returns the liqonet state of a node that prevents unencrypted packets; "": none.
func (x *crossing) stateAt(ctx context.Context, card [6]byte) string {
	ports, err := x.lab.NodeExec(ctx, "router", "bridge", "fdb", "show")
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(ports)) {
		words := strings.Fields(line) // "02:…:01 dev a-1 master br-a"
		if len(words) < 3 || words[0] != net.HardwareAddr(card[:]).String() {
			continue
		}
		const script = "nft list table ip liqonet 2>/dev/null; ip rule show priority 104"
		out, err := x.lab.NodeExec(ctx, words[2], "sh", "-c", script)
		if err != nil || len(out) > 0 {
			return fmt.Sprintf("while %s has %s %v", words[2], out, err)
		}
		return ""
	}
	return "from none of the nodes"
}

// enter begins a stage, and forgets the allowed packets of the previous one.
func (x *crossing) enter(s stage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stage = s
	clear(x.free)
}

// awaitFree waits until packets of pods of both clusters were captured while that is allowed: this shows that the
// capture would have found them before.
func (x *crossing) awaitFree(ctx context.Context, t *testing.T, declared spec.Spec) {
	t.Helper()
	silent := func() string {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, c := range declared.Clusters {
			if x.free[linkOf(c)] == 0 {
				return "the capture sees nothing of what pods of " + c.Name + " say"
			}
		}
		return ""
	}
	await(ctx, t, func() bool { return silent() == "" }, silent)
}

// judge fails the test if unencrypted packets were captured, or no packets of the tunnel.
func (x *crossing) judge(t *testing.T) {
	t.Helper()
	if x.judgeClear(t)[ruleTunnel] == 0 {
		t.Error("no packet of WireGuard was seen")
	}
}

// judgeClear fails the test if unencrypted packets were captured, and returns the numbers of others, by their rules.
func (x *crossing) judgeClear(t *testing.T) map[string]int {
	t.Helper()
	const shown = 10
	x.mu.Lock()
	defer x.mu.Unlock()
	t.Logf("packets at the router, by rule: %v", x.ruled)
	if n := len(x.clear); n > 0 {
		t.Errorf("%d packets between the clusters that obey no rule, such as\n%s", n, strings.Join(x.clear[:min(n, shown)], "\n"))
	}
	return maps.Clone(x.ruled)
}

// sendUnused has a pod of each cluster send podPayload to an unused address while the clusters are not connected.
func sendUnused(ctx context.Context, t *testing.T, l *lab.Lab, declared spec.Spec) {
	t.Helper()
	const unused = "10.70.0.9:7" // of the external CIDRs to be
	for _, c := range declared.Clusters {
		inPod(ctx, t, l, c.Name, podOn(ctx, t, l, c.Name, c.NodeName(1)), "send", "-rounds", "1", podPayload, unused)
	}
}

// keepSending has each existing pod send podPayload to each pod of the other cluster until the lab ends, or the rounds
// that flags of send limit are over.
func keepSending(ctx context.Context, t *testing.T, l *lab.Lab, c connection, flags ...string) {
	t.Helper()
	for _, s := range sides(c) {
		args := append(append([]string{"--", "/bin/workload", "send"}, flags...), podPayload)
		for _, node := range nodesOf(ctx, t, l, s.other) {
			args = append(args, s.self.seen(t, podOn(ctx, t, l, s.other, node).IP)+":7")
		}
		for _, node := range nodesOf(ctx, t, l, s.cluster) {
			pod := podOn(ctx, t, l, s.cluster, node)
			cmd, err := l.KubectlCommand(ctx, s.cluster, append([]string{"exec", pod.Name}, args...)...)
			require.NoError(t, err)
			cmd.Stderr = t.Output()
			require.NoError(t, cmd.Start())
			t.Cleanup(func() {
				_ = cmd.Process.Kill() // its exit code does not matter
				_ = cmd.Wait()
			})
		}
	}
}
