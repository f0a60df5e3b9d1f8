package commands

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
)

// errRemains says that the answer, which was printed, is that something is left.
var errRemains = errors.New("something of liqonet's is left")

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
		Short: "Say whether a cluster has anything left of liqonet",
		Long: `Say whether a cluster has anything left of liqonet: objects, and what is in the kernel of each node, also where no
object tells of it any more, as after the namespace was deleted by hand. A pod looks on every node, and is removed
again. With --remove it empties the kernel first; that is refused while liqonet is installed, which is what reset is
for. Exit code 3 says that something is left, or that a node could not be looked at.`,
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
				return withHint(errRemains, "for objects liqoctl network reset, for kernels liqoctl network verify-clean --remove")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&f.image, "image", "", "container `IMAGE` of the helpers (default: that of this release; other builds have none)")
	checkText(cmd.Flags(), "image", imageName)
	cmd.Flags().BoolVar(&f.remove, "remove", false, "remove what the nodes' kernels have")
	timeoutFlag(cmd.Flags(), &f.timeout)
	enumFlag(cmd, &f.output, "output", "o", "how to print the result", formatText, formatJSON)
	return cmd
}

func (f *verifyFlags) options(env *Env) (peering.SweepOptions, error) {
	o := peering.SweepOptions{Remove: f.remove, Timeout: f.timeout}
	if err := checkTimeout(f.timeout); err != nil {
		return o, err
	}
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
		writef(&b, "left: %s\n", o)
	}
	for _, n := range r.Nodes {
		for _, what := range n.Left {
			writef(&b, "left on node %s: %s\n", n.Name, what)
		}
	}
	if len(r.Silent) > 0 {
		writef(&b, "not Ready, and not looked at: node %s\n", strings.Join(r.Silent, ", "))
	}
	if r.Clean() {
		writef(&b, "nothing is left: no object, and nothing in the kernels of %d nodes\n", len(r.Nodes))
	}
	return b.String()
}
