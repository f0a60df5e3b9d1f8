package path

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/bench/verdict"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/clusters"
)

// processors has the quota files of the parents of CPU control groups, with cgroup v1 and v2.
var processors = map[string]string{"/sys/fs/cgroup/cpu": "cpu.cfs_quota_us", "/sys/fs/cgroup": "cpu.max"}

// quotaPeriod is the default of the kernel and of Kubernetes, in microseconds (cpu.cfs_period_us, and the second word
// of cpu.max).
const quotaPeriod = 100_000

// Limit sets a CPU quota for the server's gateway, a share of one core, until the bed is closed.
func (b *Bed) Limit(share float64) error {
	pid := []byte(strconv.Itoa(b.joined[0].Gateways[0].Helper.PID))
	for parent, file := range processors {
		group := filepath.Join(parent, "liqonet-bench-"+string(pid))
		if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err != nil {
			continue
		}
		if err := os.Mkdir(group, 0o755); err != nil {
			return fmt.Errorf("control group: %w", err)
		}
		b.t.Cleanup(func() { // before the process ends: only an empty group can be removed
			assert.NoError(b.t, errors.Join(os.WriteFile(filepath.Join(parent, "cgroup.procs"), pid, 0), os.Remove(group)))
		})
		return errors.Join(
			os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(int(share*quotaPeriod))), 0),
			os.WriteFile(filepath.Join(group, "cgroup.procs"), pid, 0))
	}
	return errors.New("this machine has no control group of processors")
}

// Peak returns the peak resident memory of a gateway since the bed was created, in bytes.
func (b *Bed) Peak() (int, error) {
	most := 0
	var errs []error
	for _, c := range b.joined {
		peak, err := load.Peak(c.Gateways[0].Helper.PID)
		most, errs = max(most, peak), append(errs, err)
	}
	return most, errors.Join(errs...)
}

// Failovers returns how often nodes and gateways reported that they send packets through another gateway or tunnel, or
// through one again after none was usable.
func (b *Bed) Failovers(ctx context.Context) (n int, err error) {
	for _, c := range b.joined {
		events, err := c.API.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return n, err
		}
		for _, e := range events.Items {
			if e.Reason == "Failover" {
				n += max(1, int(e.Count))
			}
		}
	}
	return n, nil
}

// SetLine sets the queueing discipline of the links between the nodes of every path, in each direction, such as "netem
// loss 1%". The packets in the old one are dropped.
func (b *Bed) SetLine(qdisc string) error {
	return try(func() {
		for _, c := range b.all {
			c.Nodes[0].Run("tc", append(strings.Fields("qdisc replace dev eth0 root"), strings.Fields(qdisc)...)...)
			for _, g := range c.Gateways { // a queue counts packets as the line carries them
				g.Run("ip", "link", "set", "dev", "eth0", "gso_max_segs", "1")
			}
		}
	})
}

// Verdict is the health of a peering.
type Verdict struct {
	State health.State
	Why   string
}

// Verdicts returns the states that `network status` shows for the path of helpers, in both clusters.
func (b *Bed) Verdicts(ctx context.Context) ([]Verdict, error) {
	var all []Verdict
	var errs []error
	for _, c := range b.joined {
		state, why, err := verdict.Of(ctx, c.API, records.GatewayIDs("peer", 1), clusters.PathMTU, c.NodeName(0))
		all, errs = append(all, Verdict{state, why}), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// renewed is the log message of a gateway that renews its tunnel.
const renewed = "tunnel renewed"

// Renewals returns how often the tunnels of the path of helpers were renewed since it was built.
func (b *Bed) Renewals() int {
	n := 0
	for _, c := range b.joined {
		n += c.Gateways[0].Helper.Logged(renewed)
	}
	return n
}
