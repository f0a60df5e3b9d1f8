package e2e

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/require"
)

// remnants is a pair of clusters, with their state before liqonet, and the ranges that a peer could have there.
type remnants struct {
	liqoctl
	before map[string]snapshot
	ranges map[string][]netip.Prefix
}

// newRemnants looks at both clusters, which are not connected yet. What a peer of each is called there is known as
// ranges do not collide.
func newRemnants(ctx context.Context, t *testing.T, c liqoctl) remnants {
	t.Helper()
	own := []netip.Prefix{netip.MustParsePrefix("10.64.0.0/11")} // external and internal CIDRs, and those of the other
	r := remnants{liqoctl: c, before: make(map[string]snapshot), ranges: map[string][]netip.Prefix{
		"a": append(own, netip.MustParsePrefix("10.245.0.0/16")),
		"b": append(own, netip.MustParsePrefix("10.244.0.0/16")),
	}}
	for cluster, ranges := range r.ranges {
		r.before[cluster] = takeSettled(ctx, t, c.lab, cluster, ranges)
	}
	return r
}

func (r remnants) awaitNone(ctx context.Context, t *testing.T, cluster string) {
	t.Helper()
	awaitAsBefore(ctx, t, r.lab, cluster, r.before[cluster], r.ranges[cluster])
}

// testImage connects with an image from a registry that does not exist. The command fails long before its time limit
// with an error that names the node, and leaves nothing.
func (r remnants) testImage(ctx context.Context, t *testing.T) {
	const timeout = 2 * patience
	began := time.Now()
	out, said, code := r.run(ctx, t, "network", "connect", "--context", "a", "--remote-context", "b",
		"--gw-server-service-type", "NodePort", "--image", "127.0.0.1:1/liqonet:none", "--timeout", timeout.String())
	took := time.Since(began)
	t.Logf("refused after %s", took.Round(time.Second))
	if code != 1 || out != "" || took > timeout/2 {
		t.Errorf("exit code %d after %s, want 1 and nothing on stdout:\n%s", code, took, out)
	}
	lines := "\n" + said
	if strings.Count(lines, "\nerror: ") != 1 || strings.Count(lines, "\nhint: ") != 1 || !strings.Contains(said, "-1 cannot start: ") {
		t.Errorf("want one error that names the node, and one hint:\n%s", said)
	}
	for cluster := range r.before {
		r.awaitNone(ctx, t, cluster)
	}
}

// testDisconnect checks that disconnect and reset remove everything.
func (r remnants) testDisconnect(ctx context.Context, t *testing.T) {
	r.must(ctx, t, "network", "disconnect", "--context", "a", "--remote-context", "b")
	r.atOnce(ctx, t, "reset", "a", "b")
	for cluster := range r.before {
		r.awaitNone(ctx, t, cluster)
	}
}

// testDeletedNamespace deletes cluster b's namespace with kubectl while the helpers are stopped, so that kernel state
// remains.
func (r remnants) testDeletedNamespace(ctx context.Context, t *testing.T) {
	kubectl(ctx, t, r.lab, "b", "-n", "liqonet", "patch", "daemonset", "node", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"no":"node"}}}}}`)
	kubectl(ctx, t, r.lab, "b", "-n", "liqonet", "wait", "--for=delete", "pod", "-l", "liqonet.io/component=fabric", "--timeout="+patience.String())
	kubectl(ctx, t, r.lab, "b", "delete", "namespace", "liqonet")
	found := r.verify(ctx, t, 3)
	for _, text := range []string{
		"remains: ClusterRole liqonet:liqonet:node\n", "remains on node b-1: link lqn-gw", "remains on node b-1: nftables table ip liqonet\n",
		"remains on node b-1: route 10.244.0.0/16 ", "remains on node b-1: rule ",
	} {
		if !strings.Contains(found, text) {
			t.Errorf("reset --verify-only says nothing of %q:\n%s", text, found)
		}
	}
	if said := r.must(ctx, t, "network", "reset", "--context", "b"); !strings.Contains(said, "nothing remains") {
		t.Errorf("reset without an installation:\n%s", said)
	}
	r.verify(ctx, t, 0)
	r.awaitNone(ctx, t, "b")
}

// verify runs reset --verify-only in cluster b, and returns its answer.
func (r remnants) verify(ctx context.Context, t *testing.T, want int) string {
	t.Helper()
	out, said, code := r.run(ctx, t, "network", "reset", "--verify-only", "--context", "b")
	if code != want {
		t.Errorf("reset --verify-only: exit code %d, want %d\n%s%s", code, want, out, said)
	}
	return out
}

// testLostNode removes cluster b's installation while its only node is lost: no kubelet ends the pods there. They and
// their namespace go with the Node object.
func (r remnants) testLostNode(ctx context.Context, t *testing.T) {
	r.must(ctx, t, "network", "init", "--context", "b")
	require.NoError(t, r.lab.KillNode(ctx, "b-1"))
	kubectl(ctx, t, r.lab, "b", "wait", "--for=condition=Ready=Unknown", "node/b-1", "--timeout="+patience.String())
	out, said, code := r.run(ctx, t, "network", "reset", "--context", "b")
	if code != 0 || !strings.Contains(said, "pods whose nodes are lost stay until these are back: ") {
		t.Errorf("reset: exit code %d, want 0 and a warning\n%s%s", code, out, said)
	}
	kubectl(ctx, t, r.lab, "b", "delete", "node", "b-1")
	kubectl(ctx, t, r.lab, "b", "wait", "--for=delete", "namespace/liqonet", "--timeout="+patience.String())
	r.verify(ctx, t, 0)
}

// testVanishedPeer disconnects cluster a from a peer without nodes.
func (r remnants) testVanishedPeer(ctx context.Context, t *testing.T) {
	r.must(ctx, t, "network", "disconnect", "b", "--context", "a", "--one-side")
	r.must(ctx, t, "network", "reset", "--context", "a")
	r.awaitNone(ctx, t, "a")
}
