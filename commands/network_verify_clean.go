package commands

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
)

// errRemains says that the answer, which was printed, is that state remains.
var errRemains = errors.New("liqonet state remains")

// verifyFlags are the flags of `network verify-clean`.
type verifyFlags struct {
	cluster *clusterFlags
	image   string
	remove  bool
	timeout time.Duration
	output  format
}

func newNetworkVerifyClean(env *Env, local *clusterFlags, do operation[peering.SweepOptions, peering.SweepResult]) *cobra.Command {
	f := verifyFlags{cluster: local, output: formatText}
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			var found peering.SweepResult
			keep := func(ctx context.Context, o peering.SweepOptions, r peering.Reporter) (_ peering.SweepResult, err error) {
				found, err = do(ctx, o, r)
				return found, err
			}
			err = perform(cmd.Context(), env, keep, o, f.output, describeSweep)
			if err == nil && !found.Clean() {
				return withHint(errRemains, "remove objects with liqoctl network reset, kernel state with liqoctl network verify-clean --remove")
			}
			return err
		},
	}
	imageFlag(cmd, &f.image)
	boolFlag(cmd.Flags(), &f.remove, "remove", "remove the state from the nodes' kernels")
	timeoutFlag(cmd.Flags(), &f.timeout)
	outputFlag(cmd, &f.output)
	return cmd
}

func (f *verifyFlags) options(env *Env) (peering.SweepOptions, error) {
	o := peering.SweepOptions{Remove: f.remove, Timeout: f.timeout}
	var err error
	if o.Side.Cluster, err = f.cluster.connect(env); err != nil {
		return o, err
	}
	o.Image, err = imageOrDefault(env, f.image)
	return o, err
}

// describeSweep is the answer of `network verify-clean` for people.
func describeSweep(r peering.SweepResult) string {
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
