package pathtest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
	"liqonet.io/liqonet/netops/nft"
)

// patience is the timeout of waits for a watched helper, whose duration is not tested.
const patience = 2 * time.Minute

// watched is a helper whose kernel, metrics and processor time a test reads.
type watched struct {
	*process.Process
	ns     netns.Namespace
	kernel *kernel.Kernel
}

// watchedClusters connects two clusters and returns them with the helpers of b: that of the first node, and that of the
// gateway, which is the client. When the test ends, all helpers must end without an error and with correct logs.
func watchedClusters(t *testing.T) (a, b *testCluster, node, gateway watched) {
	t.Helper()
	a, b = connected(t)
	t.Cleanup(func() {
		for _, c := range []*testCluster{a, b} {
			// The gateway of a peering that is not removed would wait for its next pod.
			_ = c.API.CoreV1().ConfigMaps(records.DefaultNamespace).Delete(context.Background(), records.PeeringName("peer"), metav1.DeleteOptions{})
			for _, p := range append(c.helpers(), c.NodeHelpers[:]...) {
				p.Stop()
			}
		}
		checkLogs(t, a, b)
	})
	return a, b, watchHelper(t, b.NodeHelpers[0], b.Nodes[0]), watchHelper(t, b.Gateways[0].Helper, b.Gateways[0].Namespace)
}

// watchHelper opens the kernel of a helper until the test ends.
func watchHelper(t *testing.T, p *process.Process, ns netns.Namespace) watched {
	t.Helper()
	k, err := kernel.OpenAt(ns.FD())
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, k.Close())
	})
	return watched{p, ns, k}
}

// checkLogs checks that each line of a helper's log is an object with the node or the peering, except where client-go
// reports that requests are delayed, and none has a key.
func checkLogs(t *testing.T, all ...*testCluster) {
	t.Helper()
	for _, c := range all {
		for _, p := range append(c.helpers(), c.NodeHelpers[:]...) {
			for _, key := range []wgtypes.Key{c.Gateways[0].Key, clusters.PresharedKey} {
				if p.Logged(key.String()) > 0 || p.Logged(hex.EncodeToString(key[:])) > 0 {
					t.Errorf("a log of cluster %s contains a key", c.Name)
				}
			}
			for line := range strings.Lines(p.Log()) {
				var fields map[string]any
				err := json.Unmarshal([]byte(line), &fields)
				delayed := fields["msg"] == "Waited before sending request" // by client-go
				own := fields["node"] != nil || fields["peering"] != nil || delayed
				if err != nil || fields["msg"] == "" || !own {
					t.Errorf("line of a log of cluster %s: %s (%v)", c.Name, line, err)
				}
			}
		}
	}
}

// used returns the processor time that the helper has used since it began.
func (w watched) used(t *testing.T) time.Duration {
	t.Helper()
	used, err := process.Time(w.PID)
	require.NoError(t, err)
	return used
}

// state is the text of liqonet's objects in the helper's kernel.
func (w watched) state(t *testing.T) string {
	t.Helper()
	have, err := w.kernel.Observe()
	require.NoError(t, err)
	table := have.Firewall // in the order in which its chains and sets were made, which means nothing
	slices.SortFunc(table.Chains, func(a, b nft.Chain) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(table.Sets, func(a, b nft.Set) int { return strings.Compare(a.Name, b.Name) })
	have.Firewall = nft.Table{}
	var text strings.Builder
	fmt.Fprintln(&text, netops.Diff(netops.State{}, have), table.Sets)
	for _, c := range table.Chains {
		fmt.Fprintln(&text, c.Name, c.Hook, c.Rules)
	}
	return text.String()
}

// Metrics of helpers.
const (
	driftMetric  = "liqonet_kernel_drift_total"
	passesMetric = "liqonet_kernel_passes_total"
)

// counter is the sum of a metric of the helper in a namespace.
func counter(t *testing.T, ns netns.Namespace, name string) float64 {
	t.Helper()
	text, err := process.Ask(ns.Handle, "/metrics")
	require.NoError(t, err)
	sum := 0.0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if last := strings.LastIndexByte(line, ' '); last >= 0 && strings.HasPrefix(line, name) {
			v, err := strconv.ParseFloat(line[last+1:], 64)
			require.NoError(t, err)
			sum += v
		}
	}
	return sum
}

func (w watched) counter(t *testing.T, name string) float64 {
	t.Helper()
	return counter(t, w.ns, name)
}

// rest waits until the helper makes no passes any more.
func (w watched) rest(t *testing.T) {
	t.Helper()
	const quiet = 200 * time.Millisecond // four of the longest pauses between two passes
	passes, since := w.counter(t, passesMetric), time.Now()
	wait.Until(t, "rest", patience, func() bool {
		if n := w.counter(t, passesMetric); n != passes {
			passes, since = n, time.Now()
		}
		return time.Since(since) >= quiet
	})
}
