//go:build lab

package peering

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
)

// act is a pair of clusters with an installation of their own, so that many plays run at once.
type act struct {
	stages    []*stage
	namespace string
	liqoctl   liqoctl // undisturbed
	helpers   []*played
}

// newAct opens a namespace of both clusters, which is not there yet.
func newAct(t *testing.T, stages []*stage, namespace string) act {
	t.Helper()
	servers := map[string]string{}
	a := act{stages: stages, namespace: namespace}
	for _, s := range stages {
		servers[s.name] = interpose(t, s.config, alone(namespace, nil))
		a.helpers = append(a.helpers, s.playHelpers(t, namespace))
	}
	a.liqoctl = newLiqoctl(t, servers)
	return a
}

// connectArgs are the arguments of a connect of the two.
func (a act) connectArgs() []string {
	return []string{"network", "connect", "--context", "a", "--remote-context", "b", "--namespace", a.namespace,
		"--gw-server-service-type", "NodePort", "--image", "liqonet.invalid/any:1"}
}

func (a act) disconnectArgs() []string {
	return []string{"network", "disconnect", "--context", "a", "--remote-context", "b", "--namespace", a.namespace}
}

func (a act) resetArgs(cluster string) []string {
	return []string{"network", "reset", "--context", cluster, "--namespace", a.namespace, "--image", "liqonet.invalid/any:1"}
}

// remove runs the commands that remove it all, and looks for what is left.
func (a act) remove(t *testing.T) {
	t.Helper()
	a.liqoctl.must(t, a.disconnectArgs()...)
	var both sync.WaitGroup // a namespace controller takes its five seconds
	for _, s := range a.stages {
		both.Go(func() { a.liqoctl.must(t, a.resetArgs(s.name)...) })
	}
	both.Wait()
	a.nothingLeft(t)
}

func (a act) nothingLeft(t *testing.T) {
	t.Helper()
	for _, s := range a.stages {
		if left := s.left(t, a.namespace); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// disturbed runs liqoctl and sends it signals at its writes, counted from 1 over both clusters.
func (a act) disturbed(t *testing.T, signals map[int]os.Signal, args ...string) (*run, *signalling, int) {
	t.Helper()
	s := &signalling{signals: signals}
	servers := map[string]string{}
	for _, stage := range a.stages {
		servers[stage.name] = interpose(t, stage.config, alone(a.namespace, s.fault))
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

// over reports whether a run ended well before it was disturbed: another run may write once more, because somebody else
// wrote the same object at the same time. The last write is followed by nothing that a signal could interrupt.
func (s *signalling) over(code, n int) bool { return code == 0 && s.total() <= n }

// connectedKeys compares what both sides hold and were told.
func (a act) connectedKeys(t *testing.T) {
	t.Helper()
	var held [2]*inventory.Keys
	var told [2]string
	for i, s := range a.stages {
		c := s.open(t, a.namespace)
		all, err := inventory.Peerings(t.Context(), c)
		if err != nil || len(all) != 1 {
			t.Fatalf("peerings of %s: %v, %v", s.name, all, err)
		}
		told[i] = tunnelOf(all[0]).PublicKey
		held[i] = keysOf(t, c, all[0].Name)
	}
	if told[0] != held[1].Public() || told[1] != held[0].Public() || held[0].Preshared() != held[1].Preshared() {
		t.Error("the sides do not hold the keys that the other was told")
	}
}

func keysOf(t *testing.T, c *cluster.Cluster, peering string) *inventory.Keys {
	t.Helper()
	k, err := inventory.ReadKeys(t.Context(), c, first(peering))
	if err != nil || k == nil {
		t.Fatalf("keys of %s in %s: %v", peering, c.Context, err)
	}
	return k
}

// writesOf counts the writes of an undisturbed run.
func (a act) writesOf(t *testing.T, args ...string) int {
	t.Helper()
	r, s, code := a.disturbed(t, nil, args...)
	if code != 0 {
		t.Fatalf("undisturbed: exit code %d\n%s", code, &r.said)
	}
	return s.total()
}

// stride is the distance between the points at which runs are disturbed that -short leaves.
func stride() int {
	if testing.Short() {
		return 5
	}
	return 1
}

// TestLabKilled kills connect after every write, and has what it left finished, and removed.
func TestLabKilled(t *testing.T) {
	stages := openStages(t)
	whole := newAct(t, stages, "whole")
	writes := whole.writesOf(t, whole.connectArgs()...)
	whole.remove(t)
	if writes < 30 {
		t.Errorf("only %d writes seen", writes)
	}
	t.Logf("connect writes %d times: as many kill points", writes)
	for n := 1; n <= writes; n += stride() {
		t.Run(fmt.Sprintf("at %02d", n), func(t *testing.T) {
			t.Parallel()
			a := newAct(t, stages, fmt.Sprintf("killed-%02d", n))
			if r, s, code := a.disturbed(t, map[int]os.Signal{n: syscall.SIGKILL}, a.connectArgs()...); code != killed && !s.over(code, n) {
				t.Fatalf("exit code %d\n%s", code, &r.said)
			}
			if n%2 == 0 { // else it is removed as it is
				a.liqoctl.must(t, a.connectArgs()...)
				a.connectedKeys(t)
			}
			a.remove(t)
		})
	}
}

// TestLabRemovalKilled kills disconnect after every write, and reset; both finish when they are run again.
func TestLabRemovalKilled(t *testing.T) {
	stages := openStages(t)
	whole := newAct(t, stages, "undone")
	whole.liqoctl.must(t, whole.connectArgs()...)
	commands := map[string][]string{"disconnect": whole.disconnectArgs(), "reset": append(whole.resetArgs("a"), "--force")}
	points := map[string]int{"disconnect": whole.writesOf(t, commands["disconnect"]...)}
	points["reset"] = whole.writesOf(t, whole.resetArgs("a")...)
	whole.remove(t)
	t.Logf("kill points: %v", points)
	for command, writes := range points {
		for n := 1; n <= writes; n += stride() {
			t.Run(fmt.Sprintf("%s at %02d", command, n), func(t *testing.T) {
				t.Parallel()
				a := newAct(t, stages, fmt.Sprintf("%s-%02d", command, n))
				a.liqoctl.must(t, a.connectArgs()...)
				args := a.disconnectArgs()
				if command == "reset" {
					args = append(a.resetArgs("a"), "--force")
				}
				if r, s, code := a.disturbed(t, map[int]os.Signal{n: syscall.SIGKILL}, args...); code != killed && !s.over(code, n) {
					t.Fatalf("exit code %d\n%s", code, &r.said)
				}
				a.remove(t)
			})
		}
	}
}
