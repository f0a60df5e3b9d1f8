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
	// translation says whether there is to be a translation service; nil: unchanged.
	translation *bool
	dryRun      bool
	timeout     time.Duration
	output      format
}

func newNetworkInit(env *Env, local *clusterFlags, do operation[peering.InitOptions, peering.InitResult]) *cobra.Command {
	f := initFlags{cluster: local, output: formatText}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Install liqonet in a cluster",
		Long: `Install liqonet in a cluster: discover the CIDRs in use, reserve them, and start the node helper. network connect does
this too where it is needed. Running it again changes nothing.

--translation installs a service that translates addresses between this cluster and its peers for other programs in the
cluster, over HTTPS. --translation=false removes it; without the flag it is left unchanged.`,
		Example: `  liqoctl network init --context a

  # Discovery is wrong, and a VPN uses 10.8.0.0/16
  liqoctl network init --context a --pod-cidr 10.244.0.0/16 --reserve 10.8.0.0/16`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			if f.dryRun {
				return perform(cmd.Context(), env, dryly(peering.PlanInit), o, f.output, describeDryRun)
			}
			return perform(cmd.Context(), env, do, o, f.output, describeInstallation)
		},
	}
	f.side = newSideFlags(cmd, "")
	f.install = newInstallFlags(cmd)
	optionalFlag(cmd.Flags(), &f.translation, "translation", "install the translation service (default: leave unchanged)")
	dryRunFlag(cmd, &f.dryRun)
	timeoutFlag(cmd.Flags(), &f.timeout)
	upstreamFlags(cmd, "wait", "yes")
	outputFlag(cmd, &f.output)
	return cmd
}

func (f *initFlags) options(env *Env) (o peering.InitOptions, err error) {
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
