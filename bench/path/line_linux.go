package path

import (
	"context"
	"errors"
	"strings"

	"liqonet.io/liqonet/bench/verdict"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/testbed/clusters"
)

// SetLine sets the queueing discipline of the links between the nodes of every path, in each direction, such as "netem
// loss 1%". The packets in the old one are dropped.
func (b *Bed) SetLine(qdisc string) error {
	return try(func() {
		for _, c := range b.all {
			c.Nodes[0].Run("tc", append(strings.Fields("qdisc replace dev eth0 root"), strings.Fields(qdisc)...)...)
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
		state, why, err := verdict.Of(ctx, c.API, "peer", clusters.PathMTU, c.NodeName(0))
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
