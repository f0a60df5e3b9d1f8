package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/require"
)

// processes is the number of concurrent programs that acquire addresses. It takes some seconds on two idle cores;
// writers that block each other give up, which is an error.
const processes = 64

// ipamCluster is the cluster of testIPAM: it has a thousand nodes that do not exist. No installation was removed from
// it: after that, an API server no longer sees the Leases that its policies compare (kubernetes/kubernetes#130887).
const ipamCluster = "ipam"

// testIPAM runs many concurrent writers of reservations against one real API server.
func testIPAM(ctx context.Context, t *testing.T, c liqoctl) {
	l := c.lab
	c.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	own := kubectl(ctx, t, l, ipamCluster, "config", "view", "--raw", "--minify")
	require.NoError(t, os.WriteFile(c.kubeconfig, []byte(own), 0o600))
	run := func(t *testing.T, pkg, name string) { runLabTest(ctx, t, l, pkg, name, "KUBECONFIG="+c.kubeconfig) }
	kubectl(ctx, t, l, ipamCluster, "create", "namespace", "liqonet")
	// Of an installation that is incomplete: nothing else is needed here.
	const none = `{"version": 1, "pools": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"], "reservations": []}`
	kubectl(ctx, t, l, ipamCluster, "-n", "liqonet", "create", "configmap", "ipam", "--from-literal=record="+none)
	kubectl(ctx, t, l, ipamCluster, "-n", "liqonet", "label", "configmap", "ipam", "liqonet.io/component=ipam")
	t.Run("processes acquire ranges", func(t *testing.T) { testProcesses(ctx, t, c) })
	t.Run("none is free", func(t *testing.T) { testNoneFree(ctx, t, c) })
	t.Run("damage is left as it is", func(t *testing.T) { testDamage(ctx, t, c) })
	long(t, "connects reserve for their peers", func(t *testing.T) { run(t, "./internal/peering", "TestLabWriters") })
	long(t, "what others do to nodes' Leases is undone", func(t *testing.T) { run(t, "./internal/helper/node", "TestLabLease") })
	long(t, "what others do to gateways' objects is undone", func(t *testing.T) { run(t, "./internal/helper/gateway", "TestLabGatewayObjects") })
	for _, test := range []struct{ what, pkg, name string }{
		{"nodes claim their numbers", "./internal/helper/claim", "TestLabNodes"},
		{"what tokens write is bounded", "./templates", "TestLabPolicies"},
	} {
		t.Run(test.what, func(t *testing.T) { run(t, test.pkg, test.name) })
	}
}

// testProcesses runs 64 programs at once that each acquire a range, and again.
func testProcesses(ctx context.Context, t *testing.T, c liqoctl) {
	first := acquireAll(ctx, t, c)
	owners := map[netip.Prefix]int{}
	for i, p := range first {
		for other, j := range owners {
			if other.Overlaps(p) {
				t.Errorf("processes %d and %d have %s and %s", i, j, p, other)
			}
		}
		owners[p] = i
	}
	for i, p := range acquireAll(ctx, t, c) {
		if p != first[i] {
			t.Errorf("process %d was given %s and then %s", i, first[i], p)
		}
	}
	var list struct {
		Reservations []struct {
			Range netip.Prefix
			Owner string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(c.must(ctx, t, "ipam", "list", "--context", ipamCluster, "-o", "json")), &list))
	if len(list.Reservations) != processes {
		t.Errorf("%d reservations are kept, want %d", len(list.Reservations), processes)
	}
	for _, r := range list.Reservations {
		if i, ok := owners[r.Range]; !ok || r.Owner != fmt.Sprintf("user/ci-%d", i) {
			t.Errorf("%s keeps %s, which no run acquired", r.Owner, r.Range)
		}
	}
}

// acquireAll starts one program for each process and returns what they print.
func acquireAll(ctx context.Context, t *testing.T, c liqoctl) []netip.Prefix {
	t.Helper()
	ranges := make([]netip.Prefix, processes)
	began := time.Now()
	var all sync.WaitGroup
	for i := range ranges {
		all.Go(func() {
			out, said, code := c.run(ctx, t, "ipam", "acquire", "/24", "--owner", fmt.Sprintf("ci-%d", i), "--context", ipamCluster)
			p, err := netip.ParsePrefix(strings.TrimSuffix(out, "\n"))
			if code != 0 || err != nil || p.Bits() != 24 {
				t.Errorf("process %d: exit code %d, stdout %q, stderr %q", i, code, out, said)
			}
			ranges[i] = p
		})
	}
	all.Wait()
	t.Logf("%d processes acquired in %s", processes, time.Since(began).Round(time.Millisecond))
	return ranges
}

func testNoneFree(ctx context.Context, t *testing.T, c liqoctl) {
	out, said, code := c.run(ctx, t, "ipam", "acquire", "/8", "--owner", "big", "--context", ipamCluster)
	if code != 4 || out != "" || !strings.Contains(said, "no free addresses") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, said)
	}
}

// testDamage writes damaged documents, which must be refused and not overwritten.
func testDamage(ctx context.Context, t *testing.T, c liqoctl) {
	kept := func() string {
		return kubectl(ctx, t, c.lab, ipamCluster, "-n", "liqonet", "get", "configmap", "ipam", "-o", "jsonpath={.data.record}")
	}
	good := kept()
	put := func(text string) {
		patch, err := json.Marshal(map[string]any{"data": map[string]string{"record": text}})
		require.NoError(t, err)
		kubectl(ctx, t, c.lab, ipamCluster, "-n", "liqonet", "patch", "configmap", "ipam", "--type", "merge", "-p", string(patch))
	}
	defer put(good)
	for reason, text := range map[string]string{
		"schema version 2, this binary knows 1": strings.Replace(good, "version: 1", "version: 2", 1),
		"damaged document":                      strings.TrimSuffix(good, " reserved\"\n"), // cut off
	} {
		put(text)
		for _, args := range [][]string{
			{"ipam", "acquire", "/24", "--owner", "late"}, {"ipam", "release", "--owner", "ci-1"},
		} {
			_, said, code := c.run(ctx, t, append(args, "--context", ipamCluster)...)
			if code != 1 || !strings.Contains(said, reason) {
				t.Errorf("%v: exit code %d, %q; want %q", args, code, said, reason)
			}
		}
		if got := kept(); got != text {
			t.Errorf("%s: the document was overwritten:\n%s", reason, got)
		}
	}
}
