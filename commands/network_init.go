package commands

import (
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
)

// initFlags are the flags of `network init`.
type initFlags struct {
	cluster *clusterFlags
	side    *sideFlags
	install *installFlags
	// translation says whether there is to be a translation service; nil: as it is.
	translation *bool
	timeout     time.Duration
	output      format
}

func newNetworkInit(env *Env, local *clusterFlags, do operation[peering.InitOptions, peering.InitResult]) *cobra.Command {
	f := initFlags{cluster: local, output: formatText}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Install liqonet in a cluster",
		Long: `Install liqonet in a cluster: find out which addresses it uses, reserve them, and start the node helper.
network connect does the same where it is missing. Running it again changes nothing.

With --translation a service in the cluster answers other programs there, over HTTPS, how addresses are called between
clusters: see docs/reflection.md. --translation=false removes it; without the flag it stays as it is.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			return perform(cmd.Context(), env, do, o, f.output, describeInstallation)
		},
	}
	f.side = newSideFlags(cmd, "")
	f.install = newInstallFlags(cmd)
	optionalFlag(cmd, &f.translation, "translation", "have a service in the cluster that answers how addresses are called (default: as it is)")
	timeoutFlag(cmd.Flags(), &f.timeout)
	enumFlag(cmd, &f.output, "output", "o", "how to print the result", formatText, formatJSON)
	return cmd
}

func (f *initFlags) options(env *Env) (o peering.InitOptions, err error) {
	if err := checkTimeout(f.timeout); err != nil {
		return o, err
	}
	o.Timeout = f.timeout
	if o.Side, err = f.side.options(); err != nil {
		return o, err
	}
	o.Installation = f.install.options()
	o.Translation = f.translation
	if o.Side.Cluster, err = f.cluster.connect(env); err != nil {
		return o, err
	}
	o.Image, err = imageOrDefault(env, o.Image)
	return o, err
}
