package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// exposure has the fields of `network expose -o json` that tests use.
type exposure struct {
	Host, Address, ReachedAt netip.Addr
	Changed                  bool
}

// expose lets b reach a host outside by a, as a user.
func (c liqoctl) expose(ctx context.Context, t *testing.T, host netip.Addr) exposure {
	t.Helper()
	return c.exposeTo(ctx, t, host, "a", "b")
}

// exposeTo lets a peer reach a host outside by a cluster.
func (c liqoctl) exposeTo(ctx context.Context, t *testing.T, host netip.Addr, cluster, peer string) exposure {
	t.Helper()
	var e exposure
	out := c.must(ctx, t, "network", "expose", host.String(), "--context", cluster, "--peer", peer, "-o", "json")
	if err := json.Unmarshal([]byte(out), &e); err != nil || e.Host != host {
		t.Fatalf("%v in %s", err, out)
	}
	return e
}

// serveOutside runs servers with that address on the lab's machine outside, until the test ends.
func serveOutside(ctx context.Context, t *testing.T, l *lab.Lab, host netip.Addr) {
	t.Helper()
	status, err := l.Status(ctx)
	require.NoError(t, err)
	cmd := l.NodeCommand(ctx, "outside", filepath.Join(status.Tools, "workload"), "serve", "-on", host.String())
	cmd.Env, cmd.Stderr = append(os.Environ(), "NODE_NAME="+host.String()), t.Output()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // its exit code does not matter
		_ = cmd.Wait()
	})
	last := ""
	await(ctx, t, func() bool {
		out, err := l.NodeExec(ctx, "a-1", "workload", "get", "-timeout", "1s", fmt.Sprintf("http://%s:8080/", host))
		last = fmt.Sprintf("%s %v", out, err)
		return err == nil
	}, func() string { return last })
}

// questions are the requests of a pod to a host: by TCP, UDP and ICMP.
func questions(target netip.Addr, limit string) [][]string {
	return [][]string{
		{"get", "-timeout", limit, fmt.Sprintf("http://%s:8080/", target)},
		{"tcp", "-timeout", limit, "-size", "1000000", fmt.Sprintf("%s:7", target)},
		{"udp", "-timeout", limit, "-df", "-size", "1200", fmt.Sprintf("%s:7", target)},
		{"ping", "-timeout", limit, target.String()},
	}
}

// testExposed has pods of b send requests to a machine in no cluster, which a exposes, and returns its address in b.
// It stays exposed until disconnect.
func testExposed(ctx context.Context, t *testing.T, u users) netip.Addr {
	l, host := u.admin.lab, spec.OutsideHosts()[0]
	t.Run("what is no host outside is refused", func(t *testing.T) { testUnfit(ctx, t, u.connector) })
	e := u.connector.expose(ctx, t, host)
	t.Run("exposed", func(t *testing.T) {
		if again := u.connector.expose(ctx, t, host); !e.Changed || again.Changed || again.ReachedAt != e.ReachedAt {
			t.Errorf("%+v, and again %+v", e, again)
		}
		if as := u.looker.translate(ctx, t, "--context", "a", "--to", "b", host.String()); as != e.ReachedAt.String() {
			t.Errorf("ipam translate returns %s, expose %s", as, e.ReachedAt)
		}
		want := fmt.Sprintf("%s as %s", host, e.ReachedAt)
		u.looker.awaitText(ctx, t, "a", want)
		expectOutside(ctx, t, l, e)
	})
	t.Run("no other host", func(t *testing.T) {
		second := u.connector.expose(ctx, t, spec.OutsideHosts()[1])
		expectOutside(ctx, t, l, second)
		u.connector.must(ctx, t, "network", "unexpose", second.Host.String(), "--context", "a", "--peer", "b")
		expectNothing(ctx, t, l, second.ReachedAt)
		expectOutside(ctx, t, l, e)
	})
	t.Run("by another gateway", func(t *testing.T) {
		kubectl(ctx, t, l, "a", "-n", "liqonet", "delete", "pod", "-l", "liqonet.io/component=gateway,liqonet.io/peering=b")
		awaitHealthy(ctx, t, u.looker, len(nodesOf(ctx, t, l, "a")))
		expectOutside(ctx, t, l, e)
	})
	return e.ReachedAt
}

// expectOutside sends requests from every pod of b: the host sees a node of a as the source.
func expectOutside(ctx context.Context, t *testing.T, l *lab.Lab, e exposure) {
	t.Helper()
	expectOutsideFrom(ctx, t, l, e, "b", "172.31.1.1")
}

// expectOutsideFrom sends requests from every pod of a cluster: the host sees a source that begins so.
func expectOutsideFrom(ctx context.Context, t *testing.T, l *lab.Lab, e exposure, cluster, source string) {
	t.Helper()
	for _, node := range nodesOf(ctx, t, l, cluster) {
		from := podOn(ctx, t, l, cluster, node)
		for _, args := range questions(e.ReachedAt, patience.String()) {
			out := inPod(ctx, t, l, cluster, from, args...)
			if args[0] != "ping" && (!strings.Contains(out, "node="+e.Host.String()+" ") || !strings.Contains(out, "from="+source)) {
				t.Errorf("%v from %s: %q, want %s to see %s…", args, node, out, e.Host, source)
			}
		}
	}
}

// silence is how long the test waits for an answer that must not arrive: long enough for two requests.
const silence = "2s"

// expectNothing sends requests from a pod of b, all kinds at once, and expects no answer.
func expectNothing(ctx context.Context, t *testing.T, l *lab.Lab, target netip.Addr) {
	t.Helper()
	from := podOn(ctx, t, l, "b", nodesOf(ctx, t, l, "b")[0])
	var all sync.WaitGroup
	for _, args := range questions(target, silence) {
		all.Go(func() {
			command := slices.Concat([]string{"exec", from.Name, "--", "/bin/workload"}, args)
			if out, err := l.Kubectl(ctx, "b", command...); err == nil {
				t.Errorf("%v is answered: %s", args, out)
			}
		})
	}
	all.Wait()
}

// testUnfit tries to expose addresses of the cluster itself, and an address that no host can have.
func testUnfit(ctx context.Context, t *testing.T, c liqoctl) {
	pod := podOn(ctx, t, c.lab, "a", "a-1").IP
	for host, why := range map[string]string{
		pod: "pod CIDR", "10.96.0.1": "service CIDR", "172.31.1.11": "node a-1", "172.31.1.10": "API server", "127.0.0.1": "loopback", "::1": "IPv4",
	} {
		out, said, code := c.run(ctx, t, "network", "expose", host, "--context", "a", "--peer", "b")
		lines := strings.Split(strings.TrimSpace(said), "\n") // the last two; before them is how far it came
		if n := len(lines); code != 2 || out != "" || n < 2 || !strings.HasPrefix(lines[n-2], "error: expose "+host+": ") ||
			!strings.Contains(lines[n-2], why) || !strings.HasPrefix(lines[n-1], "hint: ") {
			t.Errorf("expose %s: exit code %d, want 2, an error with %q and a hint:\n%s%s", host, code, why, out, said)
		}
	}
}
