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
	errContexts = errors.New("must be different contexts, separated by commas")
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
		all := append(slices.Clone(*to), strings.Split(text, ",")...) // a list in a file is set one by one
		for i, name := range all {
			if name == "" || slices.Contains(all[:i], name) {
				return nil, errContexts
			}
		}
		return all, nil
	})
}

// chosen reports whether a command works on several contexts: the flag is given, or set otherwise and not overridden by
// flags of one or two contexts.
func chosen(cmd *cobra.Command, contexts []string) bool {
	given := func(name string) bool { f := cmd.Flag(name); return f != nil && f.Changed }
	return len(contexts) > 0 && (given("contexts") || !given("context") && !given(cli.RemotePrefix+"context"))
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
	if len(f.contexts) < 2 {
		return nil, cli.Usagef("--contexts: at least two are needed")
	}
	if f.hub != "" && hub < 0 {
		return nil, cli.Usagef("--topology hub=%s: --contexts does not contain it", f.hub)
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
const ofOne = "cluster user name pod-cidr service-cidr node-network reserve pool external-cidr internal-cidr"

// checkOfOne rejects flags that concern one of two clusters, also if they are set otherwise.
func checkOfOne(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name, remote := strings.CutPrefix(f.Name, cli.RemotePrefix)
		context := name == "context"
		switch {
		case context && f.Changed, remote && !context && f.Value.String() != f.DefValue:
			err = cli.Usagef("--%s and --contexts exclude each other, also where the environment or a file sets it", f.Name)
		case slices.Contains(strings.Fields(ofOne), name) && f.Value.String() != f.DefValue:
			err = cli.Usagef("--%s is of one cluster, and --contexts of several: set it with network init before", f.Name)
		}
	})
	return err
}

// action connects the contexts.
func (f *manyFlags) action(env *cli.Env, cmd *cobra.Command, c *connectFlags) cli.Action[peering.ManyOptions, peering.Connections] {
	return cli.Action[peering.ManyOptions, peering.Connections]{
		Do: peering.ConnectMany, Plan: peering.PlanConnectMany, Text: describeConnections, Verdict: verdictOnMany,
		Options: func([]string) (peering.ManyOptions, error) { return f.options(env, cmd, c) },
	}
}

// options returns the options of the peerings.
func (f manyFlags) options(env *cli.Env, cmd *cobra.Command, c *connectFlags) (o peering.ManyOptions, err error) {
	if err := checkOfOne(cmd); err != nil {
		return o, err
	}
	o.Parallel = f.parallel
	if o.Pairs, err = f.pairs(); err != nil {
		return o, err
	}
	if o.ConnectOptions, err = c.given(); err != nil {
		return o, err
	}
	if o.Clusters, err = c.clusters.Local.ConnectAll(env, f.contexts); err != nil {
		return o, err
	}
	o.Installation = cli.Installation(env, o.Installation)
	return o, err
}

// describeConnections formats the answer of `network connect --contexts` as text: a line for each peering, and for each
// installation that was changed or failed.
func describeConnections(b *strings.Builder, r peering.Connections) {
	count := make(map[string]int)
	var rows [][]string
	for _, p := range r.Peerings {
		outcome, detail := outcomeOf(p)
		count[outcome]++
		rows = append(rows, []string{p.Local, p.Remote, outcome + detail})
	}
	_ = ui.Table(b, rows) // a strings.Builder takes everything
	for _, i := range r.Installations {
		switch {
		case i.Error != "":
			ui.Writef(b, "%s: not installed: %s\n", i.Context, i.Error)
		case i.Changed:
			ui.Writef(b, "%s: installation created or changed\n", i.Context)
		}
	}
	ui.Writef(b, "Peerings: %d connected, %d unchanged, %d not verified, %d failed (%s)\n",
		count["connected"], count["unchanged"], count["not verified"], count["failed"], ui.Seconds(time.Duration(r.Took)))
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
