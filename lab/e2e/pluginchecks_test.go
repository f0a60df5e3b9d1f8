package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// testBulk sends 10 MB from every pod to every pod of the other cluster, and back.
func testBulk(ctx context.Context, t *testing.T, l *lab.Lab, conn connection) {
	t.Helper()
	eachPair(ctx, t, l, conn, func(s side, from pod, target string) {
		inPod(ctx, t, l, s.cluster, from, "tcp", "-timeout", patience.String(), "-size", "10000000", target+":7")
	})
}

// testTooLong has every pod send a packet that is a byte longer than the path MTU and must not be fragmented: the
// sender gets an error, not silence.
func testTooLong(ctx context.Context, t *testing.T, l *lab.Lab, conn connection) {
	t.Helper()
	const headers = 20 + 8 // IP, UDP
	size := strconv.Itoa(conn.MTU - headers + 1)
	eachPair(ctx, t, l, conn, func(s side, from pod, target string) {
		out, err := l.Kubectl(ctx, s.cluster, "exec", from.Name, "--", "/bin/workload", "udp", "-df", "-size", size, target+":7")
		if err == nil || !strings.Contains(err.Error(), "message too long") {
			t.Errorf("%s bytes of UDP from %s to %s: %s %v, want message too long", size, from.IP, target, out, err)
		}
	})
}

// testClosedPort sends a datagram from every pod to a closed port of every pod of the other cluster. The sender gets
// the ICMP error.
func testClosedPort(ctx context.Context, t *testing.T, l *lab.Lab, conn connection) {
	t.Helper()
	eachPair(ctx, t, l, conn, func(s side, from pod, target string) {
		var out []byte
		var err error
		// Pods send few ICMP errors a second.
		await(ctx, t, func() bool {
			// Once.
			out, err = l.Kubectl(ctx, s.cluster, "exec", from.Name, "--", "/bin/workload", "udp", "-timeout", "900ms", target+":9")
			return err != nil && strings.Contains(err.Error(), "connection refused")
		}, func() string {
			return "UDP from " + from.IP + " to port 9 of " + target + ": " + string(out) + " " + fmt.Sprint(err)
		})
	})
}

// testExposedHost exposes a host outside by a cluster, reaches it from all pods of the other, and ends that. The host
// sees a node of the cluster as the source: its network plugin translates what leaves it.
func testExposedHost(ctx context.Context, t *testing.T, c liqoctl, s side, nodes netip.Prefix) {
	t.Helper()
	host := spec.OutsideHosts()[0]
	e := c.exposeTo(ctx, t, host, s.cluster, s.other)
	expectOutsideFrom(ctx, t, c.lab, e, s.other, strings.TrimSuffix(nodes.Addr().String(), "0"))
	c.must(ctx, t, "network", "unexpose", host.String(), "--context", s.cluster, "--peer", s.other)
}

// eachPair calls do with each pod of each cluster and, as it is seen there, the address of each pod of the other one.
func eachPair(ctx context.Context, t *testing.T, l *lab.Lab, conn connection, do func(s side, from pod, target string)) {
	t.Helper()
	for _, s := range sides(conn) {
		for _, from := range nodesOf(ctx, t, l, s.cluster) {
			for _, to := range nodesOf(ctx, t, l, s.other) {
				do(s, podOn(ctx, t, l, s.cluster, from), s.self.seen(t, podOn(ctx, t, l, s.other, to).IP))
			}
		}
	}
}

// testPolicies admits others to the pods of a cluster by a NetworkPolicy: the range by which the cluster knows the
// peer's pods; another range; liqonet's namespace, whose gateways forward the peer's packets. Then it has the cluster's
// own pods send to the peer's range alone, and to another range alone.
func testPolicies(ctx context.Context, t *testing.T, l *lab.Lab, s side) {
	t.Helper()
	nodes := nodesOf(ctx, t, l, s.cluster)
	target, own := podOn(ctx, t, l, s.cluster, nodes[0]), podOn(ctx, t, l, s.cluster, nodes[1])
	peers := podOn(ctx, t, l, s.other, nodesOf(ctx, t, l, s.other)[0])
	fromOwn, fromPeer := ask{s.cluster, own, target.IP}, ask{s.other, peers, s.peer.seen(t, target.IP)}
	toPeer := ask{s.cluster, own, s.self.seen(t, peers.IP)}
	block := func(cidr string) map[string]any { return map[string]any{"ipBlock": map[string]any{"cidr": cidr}} }
	gateways := map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "liqonet"}}}
	const other = "203.0.113.0/24"
	for _, p := range []struct {
		direction      string
		others         map[string]any
		fromPeer, away bool
	}{
		{"Ingress", block(s.self.podRange(t)), true, true},
		{"Ingress", block(other), false, true},
		{"Ingress", gateways, false, true},
		{"Egress", block(s.self.podRange(t)), true, true},
		{"Egress", block(other), true, false},
	} {
		kubectl(ctx, t, l, s.cluster, "apply", "-f", policyOf(t, p.direction, p.others))
		awaitAnswer(ctx, t, l, fromOwn, false)
		awaitAnswer(ctx, t, l, fromPeer, p.fromPeer)
		awaitAnswer(ctx, t, l, toPeer, p.away)
	}
	kubectl(ctx, t, l, s.cluster, "delete", "networkpolicy", "peers")
	for _, a := range []ask{fromOwn, fromPeer, toPeer} {
		awaitAnswer(ctx, t, l, a, true)
	}
}

// podRange is the range by which pods of the other cluster are seen.
func (s connectedSide) podRange(t *testing.T) string {
	t.Helper()
	for _, m := range s.Addresses {
		if m.Kind == "pods" {
			return m.ReachedAt.String()
		}
	}
	t.Fatal("no pods in", s.Addresses)
	return ""
}

// policyOf writes a NetworkPolicy that admits others to the pods of the DaemonSet echo, or lets these send to others.
func policyOf(t *testing.T, direction string, others map[string]any) string {
	t.Helper()
	rule, peers := "ingress", "from"
	if direction == "Egress" {
		rule, peers = "egress", "to"
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": map[string]any{"name": "peers"},
		"spec": map[string]any{
			"podSelector": map[string]any{"matchLabels": map[string]any{"app": "echo"}}, "policyTypes": []string{direction},
			rule: []any{map[string]any{peers: []any{others}}},
		},
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "policy.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// ask is a request for a page from a pod of a cluster.
type ask struct {
	cluster string
	from    pod
	address string
}

// awaitAnswer waits until a request is answered, or is not.
func awaitAnswer(ctx context.Context, t *testing.T, l *lab.Lab, a ask, want bool) {
	t.Helper()
	var out []byte
	var err error
	await(ctx, t, func() bool {
		out, err = l.Kubectl(ctx, a.cluster, "exec", a.from.Name, "--", "/bin/workload", "get", "-timeout", "3s", "http://"+a.address+":8080/")
		return (err == nil) == want
	}, func() string {
		return "the page of " + a.address + " for " + a.from.IP + " in " + a.cluster + ": " + string(out)
	})
}
