package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab"
)

// testBulk sends 10 MB from every pod to every pod of the other cluster, and back.
func testBulk(ctx context.Context, t *testing.T, l *lab.Lab, conn connection) {
	t.Helper()
	eachPair(ctx, t, l, conn, func(s side, from pod, target string) {
		inPod(ctx, t, l, s.cluster, from, "tcp", "-timeout", patience.String(), "-size", "10000000", target+":7")
	})
}

// testTooLong has every pod send a packet that is a byte longer than the path MTU and must not be fragmented: the sender
// gets an error, not silence.
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

// testPolicies admits a range to the pods of each cluster by a NetworkPolicy: that by which the cluster knows the peer's
// pods, then another one.
func testPolicies(ctx context.Context, t *testing.T, l *lab.Lab, conn connection) {
	t.Helper()
	for _, s := range sides(conn) {
		nodes := nodesOf(ctx, t, l, s.cluster)
		target, own := podOn(ctx, t, l, s.cluster, nodes[0]), podOn(ctx, t, l, s.cluster, nodes[1])
		peers := podOn(ctx, t, l, s.other, nodesOf(ctx, t, l, s.other)[0])
		seen := s.peer.seen(t, target.IP)
		for _, p := range []struct {
			admitted string
			peers    bool
		}{{s.self.podRange(t), true}, {"203.0.113.0/24", false}} {
			kubectl(ctx, t, l, s.cluster, "apply", "-f", policyOf(t, p.admitted))
			awaitAnswer(ctx, t, l, ask{s.cluster, own, target.IP}, false)
			awaitAnswer(ctx, t, l, ask{s.other, peers, seen}, p.peers)
		}
		kubectl(ctx, t, l, s.cluster, "delete", "networkpolicy", "peers")
		awaitAnswer(ctx, t, l, ask{s.cluster, own, target.IP}, true)
		awaitAnswer(ctx, t, l, ask{s.other, peers, seen}, true)
	}
}

// podRange is the range by which pods of the other cluster are seen.
func (s connectedSide) podRange(t *testing.T) string {
	t.Helper()
	for _, m := range s.Mappings {
		if m.What == "pods" {
			return m.Seen.String()
		}
	}
	t.Fatal("no pods in", s.Mappings)
	return ""
}

// policyOf writes a NetworkPolicy that admits one range to the pods of the DaemonSet echo.
func policyOf(t *testing.T, admitted string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": map[string]any{"name": "peers"},
		"spec": map[string]any{
			"podSelector": map[string]any{"matchLabels": map[string]any{"app": "echo"}}, "policyTypes": []string{"Ingress"},
			"ingress": []any{map[string]any{"from": []any{map[string]any{"ipBlock": map[string]any{"cidr": admitted}}}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
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
