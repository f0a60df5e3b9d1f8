//go:build linux

package helper

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/apiserver"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
	"liqonet.io/liqonet/netops/nft"
)

// testAPI is the API server of a cluster whose helpers are processes.
type testAPI struct {
	t      *testing.T
	socket string
	*fake.Clientset
}

func newTestAPI(t *testing.T) testAPI {
	a := testAPI{t, filepath.Join(t.TempDir(), "api"), fake.NewClientset()}
	stop := apiserver.Start(a.Clientset, a.socket)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// add creates objects.
func (a testAPI) add(objects ...runtime.Object) {
	a.t.Helper()
	for _, o := range objects {
		require.NoError(a.t, a.Tracker().Add(o))
	}
}

// status returns the report of the first gateway of peering b, and the state beside it; zero before there is one.
func (a testAPI) status() (status records.Status, state string) {
	a.t.Helper()
	cm, err := a.CoreV1().ConfigMaps(testNamespace).Get(a.t.Context(), firstGateway("b").StatusName(), metav1.GetOptions{})
	if err == nil && cm.Data[records.DataKey] != "" {
		status, err = recordOf[records.Status](cm)
	}
	require.NoError(a.t, err)
	return status, cm.Data[records.StateKey]
}

// nodeReport returns the report of the only node; zero before there is one.
func (a testAPI) nodeReport() (node records.Node) {
	a.t.Helper()
	leases, err := a.CoordinationV1().Leases(testNamespace).List(a.t.Context(), metav1.ListOptions{})
	for _, l := range leases.Items {
		if text := l.Annotations[records.AnnotationNode]; err == nil && text != "" {
			node, err = records.Decode[records.Node](text)
		}
	}
	require.NoError(a.t, err)
	return node
}

// helperProcess is a helper that runs in a namespace.
type helperProcess struct {
	*process.Process
	t      *testing.T
	netns  netns.Namespace
	kernel *kernel.Kernel
}

// start starts a helper in a namespace. When the test ends, the helper must end without an error.
func (a testAPI) start(ns netns.Namespace, j job) *helperProcess {
	a.t.Helper()
	k, err := kernel.OpenAt(ns.FD())
	require.NoError(a.t, err)
	j.Socket = a.socket
	name := "a gateway's helper"
	if j.Node != nil {
		name = "a node's helper"
	}
	p := &helperProcess{process.Start(a.t, ns, name, j), a.t, ns, k}
	a.t.Cleanup(func() {
		// The gateway of a peering that is not removed would wait for its next pod.
		_ = a.CoreV1().ConfigMaps(testNamespace).Delete(context.Background(), records.PeeringName("b"), metav1.DeleteOptions{})
		p.Stop()
		if err := k.Close(); err != nil {
			a.t.Error(err)
		}
	})
	return p
}

// used returns the processor time that the helper has used since it began.
func (p *helperProcess) used() time.Duration {
	p.t.Helper()
	used, err := process.Time(p.PID)
	require.NoError(p.t, err)
	return used
}

// state is the text of liqonet's objects in the helper's kernel.
func (p *helperProcess) state(t *testing.T) string {
	t.Helper()
	have, err := p.kernel.Observe()
	require.NoError(t, err)
	table := have.Firewall // in the order in which its chains and sets were made, which means nothing
	slices.SortFunc(table.Chains, func(a, b nft.Chain) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(table.Sets, func(a, b nft.Set) int { return strings.Compare(a.Name, b.Name) })
	have.Firewall = nft.Table{}
	return netops.Diff(netops.State{}, have).String() + table.String()
}

// counter is the sum of a metric of the helper.
func (p *helperProcess) counter(name string) float64 {
	p.t.Helper()
	text, err := process.Ask(p.netns.Handle, "/metrics")
	require.NoError(p.t, err)
	sum := 0.0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if last := strings.LastIndexByte(line, ' '); last >= 0 && strings.HasPrefix(line, name) {
			v, err := strconv.ParseFloat(line[last+1:], 64)
			require.NoError(p.t, err)
			sum += v
		}
	}
	return sum
}

// ready is nil if the helper reports to the kubelet that it is ready.
func (p *helperProcess) ready() error {
	_, err := process.Ask(p.netns.Handle, "/readyz")
	return err
}

// Metrics of helpers.
const (
	driftMetric  = "liqonet_kernel_drift_total"
	passesMetric = "liqonet_kernel_passes_total"
)

// rest waits until the helper makes no passes any more.
func (p *helperProcess) rest(t *testing.T) {
	t.Helper()
	const quiet = 4 * passPause
	passes, since := p.counter(passesMetric), time.Now()
	wait.Until(t, "rest", patience, func() bool {
		if n := p.counter(passesMetric); n != passes {
			passes, since = n, time.Now()
		}
		return time.Since(since) >= quiet
	})
}

// patience is how long a test waits where how long is not the point.
const patience = 2 * time.Minute
