// Package e2e holds the tests that need real clusters. They need root.
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/cgroup"
	"liqonet.io/liqonet/lab/control"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
	"liqonet.io/liqonet/lab/state"
)

// labName is the name of this test's lab; one called demo may run beside it.
const labName = "e2e-lab"

// buildTimeout bounds a test. The first one builds Kubernetes, for ten minutes on two idle cores, while the others
// wait.
const buildTimeout = 80 * time.Minute

// TestLab starts a lab, uses all of its functions, and checks that nothing remains.
func TestLab(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	require.NoError(t, lab.Remove(ctx, labName))
	before := observeHost(t)
	l, err := lab.Start(ctx, lab.Options{Name: labName, Log: t.Output()})
	endLab(ctx, t, labName)
	require.NoError(t, err)
	if !t.Run("nodes are ready", func(t *testing.T) { testNodes(ctx, t, l) }) {
		t.FailNow()
	}
	for _, cluster := range []string{"a", "b"} {
		kubectl(ctx, t, l, cluster, "apply", "-f", "testdata/echo.yaml")
	}
	for _, cluster := range []string{"a", "b"} {
		awaitRollout(ctx, t, l, cluster, "default", "echo")
	}
	t.Run("pods reach pods of other nodes", func(t *testing.T) { testPods(ctx, t, l, "a", "a-1", "a-2") })
	t.Run("pods reach the other cluster's nodes", func(t *testing.T) { testNodePort(ctx, t, l) })
	t.Run("a node is added", func(t *testing.T) { testAddedNode(ctx, t, l) })
	t.Run("a node is killed and comes back", func(t *testing.T) { testKilledNode(ctx, t, l) })
	t.Run("start again changes nothing", func(t *testing.T) { testStartAgain(ctx, t) })
	t.Run("nothing is left", func(t *testing.T) {
		require.NoError(t, l.Down(ctx))
		if d := cmp.Diff(before, observeHost(t)); d != "" {
			t.Errorf("the host before and after:\n%s", d)
		}
	})
}

func testNodes(ctx context.Context, t *testing.T, l *lab.Lab) {
	s, err := l.Status(ctx)
	require.NoError(t, err)
	nodes := 0
	for _, c := range s.Clusters {
		for _, n := range c.Nodes {
			nodes++
			if n.State != control.Ready {
				t.Errorf("node %s is %s", n.Name, n.State)
			}
			podCIDR := kubectl(ctx, t, l, c.Name, "get", "node", n.Name, "-o", "jsonpath={.spec.podCIDR}")
			if podCIDR != n.PodCIDR {
				t.Errorf("node %s has pods %s, want %s", n.Name, podCIDR, n.PodCIDR)
			}
		}
	}
	if nodes != 4 {
		t.Errorf("%d nodes, want 4", nodes)
	}
}

// testPods sends packets of all kinds between the pods of two nodes of a cluster.
func testPods(ctx context.Context, t *testing.T, l *lab.Lab, cluster, one, other string) {
	for _, way := range [][2]string{{one, other}, {other, one}} {
		from, to := podOn(ctx, t, l, cluster, way[0]), podOn(ctx, t, l, cluster, way[1])
		var sent exchanges
		sent.add("node="+way[1]+" ip="+to.IP+" from="+from.IP+":",
			"get http://"+to.IP+":8080/",
			"tcp -size 100000 "+to.IP+":7",
			"udp -df -size 1472 "+to.IP+":7", // 1500 - IP 20 - UDP 8
		)
		sent.add("", "ping -df -size 1472 "+to.IP)
		sent.test(ctx, t, l, cluster, from)
	}
}

func testNodePort(ctx context.Context, t *testing.T, l *lab.Lab) {
	out := inPod(ctx, t, l, "a", podOn(ctx, t, l, "a", "a-1"), "get", "http://172.31.2.12:30080/")
	if !strings.Contains(out, "node=b-") {
		t.Errorf("NodePort of b-2 from a pod of a: %q", out)
	}
	text, err := l.NodeExec(ctx, "b-1", "workload", "get", "http://172.31.1.11:30080/")
	require.NoError(t, err)
	if !bytes.Contains(text, []byte("node=a-")) {
		t.Errorf("NodePort of a-1 from node b-1: %q", text)
	}
}

func testAddedNode(ctx context.Context, t *testing.T, l *lab.Lab) {
	s, err := l.Status(ctx)
	require.NoError(t, err)
	archive, err := os.Open(filepath.Join(s.Tools, "workload.tar"))
	require.NoError(t, err)
	defer archive.Close()
	require.NoError(t, l.Load(ctx, archive))
	n, err := l.AddNode(ctx, "a")
	require.NoError(t, err)
	if n.Name != "a-3" || n.State != control.Ready {
		t.Errorf("added %+v, want a-3, ready", n)
	}
	awaitRollout(ctx, t, l, "a", "default", "echo")
	testPods(ctx, t, l, "a", "a-1", "a-3")
}

func testKilledNode(ctx context.Context, t *testing.T, l *lab.Lab) {
	require.NoError(t, l.KillNode(ctx, "a-2"))
	if _, err := l.NodeExec(ctx, "a-2", "true"); err == nil {
		t.Error("a program runs in a killed node")
	}
	require.NoError(t, l.StartNode(ctx, "a-2"))
	// The pod's old sandbox is gone; kubelet makes another in its own time.
	kubectl(ctx, t, l, "a", "delete", "pod", "-l", "app=echo", "--field-selector", "spec.nodeName=a-2")
	awaitRollout(ctx, t, l, "a", "default", "echo")
	testPods(ctx, t, l, "a", "a-3", "a-2")
}

func testStartAgain(ctx context.Context, t *testing.T) {
	if _, err := lab.Start(ctx, lab.Options{Name: labName}); err != nil {
		t.Error(err)
	}
	other := spec.Spec{Clusters: []spec.Cluster{{Name: "c"}}}
	if _, err := lab.Start(ctx, lab.Options{Name: labName, Spec: other}); err == nil {
		t.Error("a lab with another spec: started, want an error")
	}
}

// pod is a pod of the DaemonSet echo.
type pod struct{ Name, IP string }

// podOn waits until a node has one pod, and it is ready: a DaemonSet's controller follows nodes and pods in its own
// time, and "rollout status" does not wait for it.
func podOn(ctx context.Context, t *testing.T, l *lab.Lab, cluster, node string) pod {
	t.Helper()
	const fields = `jsonpath={range .items[*]}{.metadata.name}|{.metadata.deletionTimestamp}|` +
		`{.status.conditions[?(@.type=="Ready")].status}|{.status.podIPs[*].ip}{"\n"}{end}`
	var found pod
	var text string
	await(ctx, t, func() bool {
		text = strings.TrimSpace(kubectl(ctx, t, l, cluster,
			"get", "pods", "-l", "app=echo", "--field-selector", "spec.nodeName="+node, "-o", fields))
		name, state, _ := strings.Cut(text, "|")
		addresses, ready := strings.CutPrefix(state, "|True|")
		four := onlyIPv4(strings.Fields(addresses))
		if !ready || len(four) == 0 || strings.Contains(text, "\n") {
			return false
		}
		found = pod{name, four[0]}
		return true
	}, func() string { return fmt.Sprintf("node %s has no pod that is ready: %q", node, text) })
	return found
}

// inPod runs the workload program in a pod and returns what it prints.
func inPod(ctx context.Context, t *testing.T, l *lab.Lab, cluster string, p pod, args ...string) string {
	t.Helper()
	return kubectl(ctx, t, l, cluster, append([]string{"exec", p.Name, "--", "/bin/workload"}, args...)...)
}

// exchanges are commands of the workload program that run in one pod, one after the other in one process: to start one
// by the API server takes longer than what it does.
type exchanges struct {
	commands []string
	want     map[string]int // how often their output contains a text
}

// add adds commands, each of which prints a text.
func (e *exchanges) add(want string, commands ...string) {
	e.commands = append(e.commands, commands...)
	if e.want == nil {
		e.want = map[string]int{}
	}
	if want != "" {
		e.want[want] += len(commands)
	}
}

func (e *exchanges) test(ctx context.Context, t *testing.T, l *lab.Lab, cluster string, p pod) {
	t.Helper()
	out := inPod(ctx, t, l, cluster, p, append([]string{"each"}, e.commands...)...)
	for text, times := range e.want {
		if n := strings.Count(out, text); n != times {
			t.Errorf("%d times %q, want %d, in what pod %s of %s prints for %q:\n%s", n, text, times, p.Name, cluster, e.commands, out)
		}
	}
}

func kubectl(ctx context.Context, t *testing.T, l *lab.Lab, cluster string, args ...string) string {
	t.Helper()
	out, err := l.Kubectl(ctx, cluster, args...)
	require.NoError(t, err)
	return string(out)
}

// host is the state of the machine that a lab could change.
type host struct {
	Instances                        string // the sysctl that a lab raises
	Links, Mounts, Groups, Processes []string
	Files                            bool
}

func observeHost(t *testing.T) host {
	t.Helper()
	instances, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	require.NoError(t, err)
	h := host{Instances: string(instances)}
	links, err := net.Interfaces()
	require.NoError(t, err)
	for _, l := range links {
		h.Links = append(h.Links, l.Name)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "liqonet-lab/"+labName) { // other tests mount, too
			h.Mounts = append(h.Mounts, line)
		}
	}
	paths := state.Paths{Name: labName}
	if h.Groups, err = cgroup.Find(paths.Group()); err != nil {
		t.Fatal(err)
	}
	if h.Files, err = paths.Exists(); err != nil {
		t.Fatal(err)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range commands {
		// What ended since the listing cannot be read.
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(paths.Data())) {
			h.Processes = append(h.Processes, string(text))
		}
	}
	return h
}
