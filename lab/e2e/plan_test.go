package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
)

// writes returns the changes that liqoctl requested from an API server since an offset of its audit log, and the new
// offset. Dry runs and access reviews change nothing.
func writes(t *testing.T, l *lab.Lab, cluster string, offset int64) (asked []string, end int64) {
	t.Helper()
	file, err := os.Open(l.AuditLog(cluster))
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	if end, err = file.Seek(0, 2); err == nil {
		_, err = file.Seek(offset, 0)
	}
	require.NoError(t, err)
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e struct {
			Verb       string `json:"verb"`
			RequestURI string `json:"requestURI"`
			User       struct {
				Username string `json:"username"`
			} `json:"user"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // a line that is being written
		}
		reads := e.Verb == "get" || e.Verb == "list" || e.Verb == "watch"
		component := strings.HasPrefix(e.User.Username, "system:") // pods, nodes and the control plane
		if !component && !reads && !strings.Contains(e.RequestURI, "dryRun=All") &&
			!strings.Contains(e.RequestURI, "selfsubjectaccessreviews") {
			asked = append(asked, e.Verb+" "+e.RequestURI)
		}
	}
	return asked, end
}

// dryRun runs a command with --dry-run and returns its plan. Nothing may be written meanwhile.
func dryRun(ctx context.Context, t *testing.T, c liqoctl, args ...string) string {
	t.Helper()
	offsets := map[string]int64{}
	for _, cluster := range []string{"a", "b"} {
		_, offsets[cluster] = writes(t, c.lab, cluster, 0)
	}
	out := c.must(ctx, t, append(args, "--dry-run")...)
	for cluster, offset := range offsets {
		asked, end := writes(t, c.lab, cluster, offset)
		if len(asked) > 0 {
			t.Errorf("liqoctl %s --dry-run asked cluster %s to %v", strings.Join(args, " "), cluster, asked)
		}
		if end == offset && cluster == "a" { // reset leaves b alone
			t.Error("the audit log has nothing of the dry run")
		}
	}
	return out
}

// testPlans runs commands with --dry-run, and checks their plans.
func testPlans(ctx context.Context, t *testing.T, c liqoctl, phase string) {
	t.Helper()
	connect := []string{"network", "connect", "--context", "a", "--remote-context", "b", "--gw-server-service-type", "LoadBalancer"}
	if phase == "fresh" {
		out := dryRun(ctx, t, c, append(connect, "-o", "wide")...)
		for _, want := range []string{"+ installation ", "+ peering b ", "2 clusters: ", " to create, 0 to change, 0 to delete", "create DaemonSet node", "create Secret peering-b", "overlay.kind: known after apply", "reserve "} {
			if !strings.Contains(out, want) {
				t.Errorf("the plan of a first connect has no %q:\n%s", want, out)
			}
		}
		return
	}
	// What flags leave out stays.
	open := []string{"network", "connect", "--context", "a", "--remote-context", "b", "--update"}
	for _, args := range [][]string{connect, open} {
		if out := dryRun(ctx, t, c, args...); out != "a and b: no changes\n" {
			t.Errorf("connected, and yet by %s:\n%s", args, out)
		}
	}
	narrow := append(connect, "--mtu", "1300")
	if out := dryRun(ctx, t, c, narrow...); strings.Count(out, " -> 1300") != 1 || strings.Contains(out, "settings.mtu") || strings.Contains(out, "kernel of") {
		t.Errorf("another MTU:\n%s", out)
	}
	if out := dryRun(ctx, t, c, append(narrow, "-o", "wide")...); strings.Count(out, "\n    mtu: ") != 2 ||
		!strings.Contains(out, "kernel of node a-1:\n") || !strings.Contains(out, "kernel of gateway of a:\n") {
		t.Errorf("another MTU:\n%s", out)
	}
	out := dryRun(ctx, t, c, "network", "disconnect", "--context", "a", "--remote-context", "b", "-o", "wide")
	for _, want := range []string{"- peering b ", "delete Secret peering-b", "delete Service gateway-a", "release "} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan of disconnect has no %q:\n%s", want, out)
		}
	}
	if out := dryRun(ctx, t, c, "network", "reset", "--context", "a", "--force"); !strings.Contains(out, "- installation ") || !strings.Contains(out, "- peering b ") {
		t.Errorf("the plan of reset:\n%s", out)
	}
}

// testRendered creates a peering by kubectl apply of rendered manifests. status shows it as healthy, and connect
// changes nothing.
func testRendered(ctx context.Context, t *testing.T, c liqoctl) connection {
	t.Helper()
	dir := t.TempDir()
	flags := []string{"--mtu", "1300", "--overlay", "vxlan", "--gw-server-service-nodeport", "31840"}
	c.must(ctx, t, append([]string{"network", "render", "--context", "a", "--remote-context", "b", "--with-secrets", "--dir", dir,
		"--gw-server-service-type", "NodePort"}, flags...)...)
	for _, cluster := range []string{"a", "b"} {
		kubectl(ctx, t, c.lab, cluster, "apply", "-f", filepath.Join(dir, cluster))
	}
	awaitHealthy(ctx, t, c, 1)
	got := c.connect(ctx, t, flags...)
	if got.Changed {
		t.Error("connect changed what was applied")
	}
	return got
}
