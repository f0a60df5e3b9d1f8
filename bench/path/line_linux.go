package path

import (
	"context"
	"errors"
	"strings"

	"liqonet.io/liqonet/bench/verdict"
	"liqonet.io/liqonet/internal/health"
)

// SetLine sets the queueing discipline of the links between the nodes of every path, in each direction, such as "netem
// loss 1%". The packets in the old one are dropped.
func (b *Bed) SetLine(qdisc string) error {
	var errs []error
	for _, node := range b.nodes {
		_, err := node.Run(b.ctx, "", "tc", append(strings.Fields("qdisc replace dev eth0 root"), strings.Fields(qdisc)...)...)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
		state, why, err := verdict.Of(ctx, c.api, peeringName, pathMTU, nodeName)
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
		n += c.process.Logged(renewed)
	}
	return n
}
