//go:build lab

package peering

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

// pair is a pair of clusters with an installation of its own, so that many tests can run in parallel.
type pair struct {
	clusters  []*fakecluster.Real
	namespace string
	liqoctl   liqoctl // without faults
	helpers   []*fakecluster.Helpers
}

// newPair returns a pair with a new namespace in both clusters.
func newPair(t *testing.T, clusters []*fakecluster.Real, namespace string) pair {
	t.Helper()
	servers := map[string]string{}
	a := pair{clusters: clusters, namespace: namespace}
	for _, s := range clusters {
		servers[s.Name] = interpose(t, s.Config, hideInstallations(namespace, nil))
		a.helpers = append(a.helpers, s.RunHelpers(t, namespace))
	}
	a.liqoctl = newLiqoctl(t, servers)
	return a
}

// connectArgs returns the arguments of a connect of the pair.
func (a pair) connectArgs() []string {
	return []string{"network", "connect", "--context", "a", "--remote-context", "b", "--namespace", a.namespace,
		"--gw-server-service-type", "NodePort", "--image", "liqonet.invalid/any:1"}
}

func (a pair) disconnectArgs() []string {
	return []string{"network", "disconnect", "--context", "a", "--remote-context", "b", "--namespace", a.namespace}
}

func (a pair) resetArgs(cluster string) []string {
	return []string{"network", "reset", "--context", cluster, "--namespace", a.namespace, "--image", "liqonet.invalid/any:1"}
}

// remove runs the commands that remove everything, and checks that nothing remains.
func (a pair) remove(t *testing.T) {
	t.Helper()
	a.liqoctl.must(t, a.disconnectArgs()...)
	var both sync.WaitGroup // the namespace controller waits for five seconds
	for _, s := range a.clusters {
		both.Go(func() { a.liqoctl.must(t, a.resetArgs(s.Name)...) })
	}
	both.Wait()
	a.nothingLeft(t)
}

func (a pair) nothingLeft(t *testing.T) {
	t.Helper()
	for _, s := range a.clusters {
		if left := s.Left(t, a.namespace); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// disturbed runs liqoctl and sends it signals at its writes, counted from 1 over both clusters.
func (a pair) disturbed(t *testing.T, signals map[int]os.Signal, args ...string) (*run, *signalling, int) {
	t.Helper()
	s := &signalling{signals: signals}
	servers := map[string]string{}
	for _, c := range a.clusters {
		servers[c.Name] = interpose(t, c.Config, hideInstallations(a.namespace, s.fault))
	}
	s.mu.Lock()
	r := newLiqoctl(t, servers).start(t, args...)
	s.send = func(signal os.Signal) {
		if err := r.cmd.Process.Signal(signal); err != nil {
			t.Errorf("send %s: %v", signal, err)
		}
	}
	s.mu.Unlock()
	return r, s, r.wait(t)
}

// completed reports whether a run completed before its signal: the number of writes depends on conflicts with other
// writers, and no signal can interrupt a run after its last write.
func (s *signalling) completed(code, n int) bool { return code == 0 && s.total() <= n }

// connectedKeys compares the keys of each cluster with those in the peer's record.
func (a pair) connectedKeys(t *testing.T) {
	t.Helper()
	var held [2]*inventory.Keys
	var recorded [2]string
	for i, s := range a.clusters {
		c := s.Open(t, a.namespace)
		all, err := inventory.Peerings(t.Context(), c)
		if err != nil || len(all) != 1 {
			t.Fatalf("peerings of %s: %v, %v", s.Name, all, err)
		}
		recorded[i] = acceptedKey(t, tunnelOf(all[0]))
		held[i] = keysOf(t, c, all[0].Name)
	}
	if recorded[0] != held[1].Public() || recorded[1] != held[0].Public() || held[0].Preshared() != held[1].Preshared() {
		t.Error("the public keys in the records differ from those of the peers")
	}
}

func keysOf(t *testing.T, c *kube.Cluster, peering string) *inventory.Keys {
	t.Helper()
	k, err := inventory.ReadKeys(t.Context(), c, fakecluster.FirstGateway(peering))
	if err != nil || k == nil {
		t.Fatalf("keys of %s in %s: %v", peering, c.Context, err)
	}
	return k
}

// writesOf returns the number of writes of an undisturbed run.
func (a pair) writesOf(t *testing.T, args ...string) int {
	t.Helper()
	r, s, code := a.disturbed(t, nil, args...)
	if code != 0 {
		t.Fatalf("undisturbed: exit code %d\n%s", code, &r.stderr)
	}
	return s.total()
}

// TestLabKilled kills connect after every write; the next run completes the peering, or it is removed.
func TestLabKilled(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	whole := newPair(t, clusters, "whole")
	writes := whole.writesOf(t, whole.connectArgs()...)
	whole.remove(t)
	if writes < 30 {
		t.Errorf("only %d writes seen", writes)
	}
	t.Logf("connect writes %d times: as many kill points", writes)
	for n := 1; n <= writes; n++ {
		t.Run(fmt.Sprintf("at %02d", n), func(t *testing.T) {
			t.Parallel()
			a := newPair(t, clusters, fmt.Sprintf("killed-%02d", n))
			if r, s, code := a.disturbed(t, map[int]os.Signal{n: syscall.SIGKILL}, a.connectArgs()...); code != killed && !s.completed(code, n) {
				t.Fatalf("exit code %d\n%s", code, &r.stderr)
			}
			if n%2 == 0 { // otherwise it is only removed
				a.liqoctl.must(t, a.connectArgs()...)
				a.connectedKeys(t)
			}
			a.remove(t)
		})
	}
}

// TestLabRemovalKilled kills disconnect and reset after every write; another run completes them.
func TestLabRemovalKilled(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	whole := newPair(t, clusters, "undone")
	whole.liqoctl.must(t, whole.connectArgs()...)
	commands := map[string][]string{"disconnect": whole.disconnectArgs(), "reset": append(whole.resetArgs("a"), "--force")}
	points := map[string]int{"disconnect": whole.writesOf(t, commands["disconnect"]...)}
	points["reset"] = whole.writesOf(t, whole.resetArgs("a")...)
	whole.remove(t)
	t.Logf("kill points: %v", points)
	for command, writes := range points {
		for n := 1; n <= writes; n++ {
			t.Run(fmt.Sprintf("%s at %02d", command, n), func(t *testing.T) {
				t.Parallel()
				a := newPair(t, clusters, fmt.Sprintf("%s-%02d", command, n))
				a.liqoctl.must(t, a.connectArgs()...)
				args := a.disconnectArgs()
				if command == "reset" {
					args = append(a.resetArgs("a"), "--force")
				}
				if r, s, code := a.disturbed(t, map[int]os.Signal{n: syscall.SIGKILL}, args...); code != killed && !s.completed(code, n) {
					t.Fatalf("exit code %d\n%s", code, &r.stderr)
				}
				a.remove(t)
			})
		}
	}
}
