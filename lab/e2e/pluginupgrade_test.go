package e2e

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/faults/flows"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// earlierRelease is the earlier release of a plugin, the lab's own if it has none.
func earlierRelease(p spec.NetworkPlugin) spec.NetworkPlugin {
	i := slices.IndexFunc(spec.RealPlugins(), func(other spec.NetworkPlugin) bool { return other != p && other.Current() == p })
	if i < 0 {
		return p
	}
	return spec.RealPlugins()[i]
}

// upgradable reports whether a plugin runs in an earlier release.
func upgradable(declared spec.Spec) bool {
	return slices.ContainsFunc(declared.Clusters, func(c spec.Cluster) bool { return c.NetworkPlugin != c.NetworkPlugin.Current() })
}

// testUpgradedPlugins upgrades the plugins of both clusters from their manifests or charts while pods send packets to
// the other cluster's. No stream may break. How many packets are lost is logged: a plugin that replaces its programs
// may lose some of its own.
func testUpgradedPlugins(ctx context.Context, t *testing.T, l *lab.Lab, declared spec.Spec, conn connection) {
	t.Helper()
	const probes = "../faults/probe.yaml"
	for _, s := range sides(conn) {
		kubectl(ctx, t, l, s.cluster, "apply", "-f", probes)
	}
	for _, s := range sides(conn) {
		awaitRollout(ctx, t, l, s.cluster, "default", "probe")
	}
	for _, s := range sides(conn) {
		var far []string
		for _, other := range labelled(ctx, t, l, s.other, "app=probe") {
			far = append(far, s.self.seen(t, other.IP))
		}
		own := labelled(ctx, t, l, s.cluster, "app=probe")
		for i, from := range own {
			// And to the next pod of the same cluster, for comparison.
			to := url.Values{"to": append(slices.Clone(far), own[(i+1)%len(own)].IP)}
			ofProbe(ctx, t, l, s.cluster, from, "begin?"+to.Encode())
		}
	}
	begun := time.Now()
	for _, c := range declared.Clusters {
		if c.NetworkPlugin == c.NetworkPlugin.Current() {
			continue
		}
		require.NoError(t, l.UpgradePlugin(ctx, c.Name))
	}
	awaitPlugins(ctx, t, l, declared)
	t.Logf("upgraded in %s", time.Since(begun).Round(time.Second))
	for _, s := range sides(conn) {
		for _, from := range labelled(ctx, t, l, s.cluster, "app=probe") {
			var results []flows.Result
			require.NoError(t, json.Unmarshal([]byte(ofProbe(ctx, t, l, s.cluster, from, "end")), &results))
			for _, r := range results {
				t.Logf("from %s to %s: %d of %d packets lost, %s without, longest pause of a stream %s %v", from.IP, r.To, r.Lost, r.Sent,
					r.Without.Round(time.Millisecond), r.Pause.Round(time.Millisecond), r.Losses)
				if r.Sent == 0 || r.Lost == r.Sent || r.Broken > 0 {
					t.Errorf("from %s to %s: %+v", from.IP, r.To, r)
				}
			}
		}
	}
	for _, s := range sides(conn) {
		kubectl(ctx, t, l, s.cluster, "delete", "-f", probes)
	}
}

// ofProbe asks the probe of a pod and returns its answer.
func ofProbe(ctx context.Context, t *testing.T, l *lab.Lab, cluster string, p pod, path string) string {
	t.Helper()
	return kubectl(ctx, t, l, cluster, "exec", p.Name, "-c", "probe", "--", "/bin/workload", "get", "http://127.0.0.1:8090/"+path)
}

// labelled are the pods of a cluster that have a label.
func labelled(ctx context.Context, t *testing.T, l *lab.Lab, cluster, label string) []pod {
	t.Helper()
	var pods []pod
	for line := range strings.Lines(kubectl(ctx, t, l, cluster, "get", "pods", "-l", label, "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.status.podIP}{"\n"}{end}`)) {
		if name, ip, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			pods = append(pods, pod{name, ip})
		}
	}
	if len(pods) == 0 {
		t.Fatalf("no pod of cluster %s has the label %s", cluster, label)
	}
	return pods
}
