package network

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/peering"
)

var (
	errContexts = errors.New("must be at least two different contexts, separated by commas")
	errTopology = errors.New("must be mesh or hub=CONTEXT")
)

// manyFlags select several clusters to connect with each other.
type manyFlags struct {
	contexts []string
	hub      string // "": a mesh
	parallel int
}

func (f *manyFlags) register(cmd *cobra.Command) {
	f.parallel = 10
	contextsFlag(cmd, &f.contexts, "connect these contexts of the kubeconfig with each other, instead of --context and --remote-context")
	topology := ui.AddFlag(cmd.Flags(), &f.hub, "topology", "TOPOLOGY", "with --contexts: mesh connects all, hub=CONTEXT one with each other (default mesh)", readTopology)
	topology.DefValue = ""
	ui.AddFlag(cmd.Flags(), &f.parallel, "parallel", "NUMBER", "with --contexts: peerings that are connected at the same time", ui.Between(1, 100))
}

// contextsFlag adds a flag with several contexts.
func contextsFlag(cmd *cobra.Command, to *[]string, usage string) {
	ui.AddFlag(cmd.Flags(), to, "contexts", "CONTEXT,...", usage, func(text string) ([]string, error) {
		all := strings.Split(text, ",")
		for i, name := range all {
			if name == "" || slices.Contains(all[:i], name) {
				return nil, errContexts
			}
		}
		if len(all) < 2 {
			return nil, errContexts
		}
		return all, nil
	})
}

// readTopology returns the hub; "" for a mesh.
func readTopology(text string) (string, error) {
	hub, is := strings.CutPrefix(text, "hub=")
	if text != "mesh" && (!is || hub == "") {
		return "", errTopology
	}
	if !is {
		return "", nil
	}
	return hub, nil
}

// pairs returns the peerings of the topology, by indices of the contexts. The later one of two is the remote cluster.
func (f manyFlags) pairs() (pairs [][2]int, err error) {
	hub := slices.Index(f.contexts, f.hub)
	if f.hub != "" && hub < 0 {
		return nil, cli.Usagef("--topology hub=%s: it is none of --contexts", f.hub)
	}
	for i := range f.contexts {
		for j := i + 1; j < len(f.contexts); j++ {
			if f.hub == "" || i == hub || j == hub {
				pairs = append(pairs, [2]int{i, j})
			}
		}
	}
	return pairs, nil
}

// ofOne are the flags that concern one of two clusters.
const ofOne = "context cluster user name pod-cidr service-cidr node-network reserve pool external-cidr internal-cidr"

// options returns the options of the peerings. Flags of one of two clusters are usage errors.
func (f manyFlags) options(env *cli.Env, cmd *cobra.Command, c *connectFlags) (o peering.ManyOptions, err error) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if slices.Contains(strings.Fields(ofOne), strings.TrimPrefix(flag.Name, cli.RemotePrefix)) || strings.HasPrefix(flag.Name, cli.RemotePrefix) {
			err = cli.Usagef("--%s is of one cluster, and --contexts of all: run network init for it first", flag.Name)
		}
	})
	if err != nil {
		return o, err
	}
	o = peering.ManyOptions{
		Parallel: f.parallel, Installation: c.Installation, Options: c.Options, Gateways: c.Local.Gateways, Keep: c.Keep, Timeout: c.Timeout,
	}
	if c.serverSide != "" {
		o.LocalServes = new(c.serverSide == localPlace)
	}
	if o.Pairs, err = f.pairs(); err != nil {
		return o, err
	}
	if err := checkConnect(peering.ConnectOptions{Options: o.Options}); err != nil {
		return o, err
	}
	if o.Clusters, err = c.clusters.Local.ConnectAll(env, f.contexts); err != nil {
		return o, err
	}
	o.Installation, err = cli.Installation(env, o.Installation)
	return o, err
}

// describeConnections formats the answer of `network connect --contexts` as text: a line for each peering.
func describeConnections(r peering.Connections) string {
	var b strings.Builder
	count := make(map[string]int)
	for _, p := range r.Peerings {
		outcome, detail := outcomeOf(p)
		count[outcome]++
		ui.Writef(&b, "%s %s   %s%s\n", p.Local, p.Remote, outcome, detail)
	}
	ui.Writef(&b, "Peerings: %d connected, %d unchanged, %d not verified, %d failed (%s)\n",
		count["connected"], count["unchanged"], count["not verified"], count["failed"], ui.Seconds(time.Duration(r.Took)))
	return b.String()
}

// outcomeOf returns the outcome of a peering, and details.
func outcomeOf(p peering.PairResult) (outcome, detail string) {
	if p.Result == nil {
		detail = ": " + p.Error
		if p.Hint != "" {
			detail += "; " + p.Hint
		}
		return "failed", detail
	}
	if unverified := slices.Concat(p.Result.Local.Unverified, p.Result.Remote.Unverified); len(unverified) > 0 {
		return "not verified", ": " + ui.Joined(unverified, func(n peering.UnverifiedNode) string { return "node " + n.Name + ": " + n.Reason })
	}
	outcome = "unchanged"
	if p.Result.Changed {
		outcome = "connected"
	}
	return outcome, fmt.Sprintf(" (%s)", ui.Seconds(time.Duration(p.Result.Took)))
}

// verdictOnMany returns an error if a peering failed or has unverified nodes.
func verdictOnMany(r peering.Connections) error {
	var unverified error
	for _, p := range r.Peerings {
		switch outcome, _ := outcomeOf(p); outcome {
		case "failed":
			return errors.New("not all peerings are connected")
		case "not verified":
			unverified = cli.ErrUnverified
		}
	}
	return unverified
}
