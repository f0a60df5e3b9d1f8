package commands

import (
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
)

func newNetworkInit(env *Env, local *clusterFlags, do operation[peering.InitOptions, peering.InitResult]) *cobra.Command {
	var flags peering.InitOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Install liqonet in a cluster",
		Long: `Install liqonet in a cluster: discover the CIDRs in use, reserve them, and start the node helper. network connect does
this too where it is needed. Running it again changes nothing. If the helpers of some Ready nodes do not report in time,
the command names these nodes, and its exit code is 3; with --all-nodes it fails.`,
		Example: `  liqoctl network init --context a

  # Discovery is wrong, and a VPN uses 10.8.0.0/16
  liqoctl network init --context a --pod-cidr 10.244.0.0/16 --reserve 10.8.0.0/16`,
		Args: arguments(),
	}
	sideFlags(cmd, &flags.Side, "")
	installFlags(cmd, &flags.Installation)
	allNodesFlag(cmd, &flags.Installation)
	return action[peering.InitOptions, peering.InitResult]{
		do: do, plan: peering.PlanInit, text: describeInstallation, timeout: &flags.Timeout, bySize: true, ignored: []string{"wait", "yes"},
		verdict: func(r peering.InitResult) error { return verifiedAll(r.Unverified...) },
		options: func([]string) (peering.InitOptions, error) {
			o, err := flags, checkSide(flags.Side)
			if err != nil {
				return o, err
			}
			if o.Side.Cluster, err = local.connect(env); err != nil {
				return o, err
			}
			o.Installation, err = installation(env, o.Installation)
			return o, err
		},
	}.command(env, cmd)
}
