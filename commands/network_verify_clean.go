package commands

import (
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/removal"
)

func newNetworkVerifyClean(env *Env, local *clusterFlags, do operation[removal.SweepOptions, removal.SweepResult]) *cobra.Command {
	var flags removal.SweepOptions
	cmd := &cobra.Command{
		Use:   "verify-clean",
		Short: "Check that no liqonet state remains in a cluster",
		Long: `Check that no liqonet state remains in a cluster: objects in the API server, and links, routes, rules and tables in the
kernel of every node, even if the namespace was deleted by hand. The command runs a pod on every node, and removes it
afterwards. The exit code is 3 if state remains or a node cannot be checked.

--remove removes the state from the kernels. It is refused while liqonet is installed: use network reset instead.`,
		Example: `  liqoctl network verify-clean --context a

  # The namespace was deleted by hand: clean up the nodes
  liqoctl network verify-clean --context a --remove`,
		Args: arguments(),
	}
	imageFlag(cmd, &flags.Image)
	podFlags(cmd, &flags.Pods)
	boolFlag(cmd.Flags(), &flags.Remove, "remove", "remove the state from the nodes' kernels")
	return action[removal.SweepOptions, removal.SweepResult]{
		do: do, text: describeSweep, timeout: &flags.Timeout,
		options: func([]string) (o removal.SweepOptions, err error) {
			o = flags
			if o.Cluster, err = local.connect(env); err != nil {
				return o, err
			}
			o.Image, err = imageOrDefault(env, o.Image)
			return o, err
		},
		verdict: func(found removal.SweepResult) error {
			if found.Clean() {
				return nil
			}
			return hint.With(errRemains, "remove objects with liqoctl network reset, kernel state with liqoctl network verify-clean --remove")
		},
	}.command(env, cmd)
}

// describeSweep is the answer of `network verify-clean` for people.
func describeSweep(r removal.SweepResult) string {
	var b strings.Builder
	for _, o := range r.Objects {
		writef(&b, "remains: %s\n", o)
	}
	for _, n := range r.Nodes {
		for _, what := range n.Left {
			writef(&b, "remains on node %s: %s\n", n.Name, what)
		}
	}
	if len(r.Silent) > 0 {
		writef(&b, "not checked, not Ready: node %s\n", strings.Join(r.Silent, ", "))
	}
	if r.Clean() {
		writef(&b, "nothing remains: no objects, and no state in the kernels of %d nodes\n", len(r.Nodes))
	}
	return b.String()
}
