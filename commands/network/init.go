package network

import (
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/peering"
)

func newInit(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[peering.InitOptions, peering.InitResult]) *cobra.Command {
	var flags peering.InitOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Install liqonet in a cluster",
		Long: `Install liqonet in a cluster: discover the CIDRs in use, reserve them, and start the node helper. network connect does
this too where it is needed. Running it again changes nothing. If the helpers of some Ready nodes do not report in time,
the command lists these nodes, and its exit code is 3; with --all-nodes it fails.`,
		Example: `  liqoctl network init --context a

  # Override the pod CIDR, and reserve the CIDR of a VPN
  liqoctl network init --context a --pod-cidr 10.244.0.0/16 --reserve 10.8.0.0/16`,
		Args: cli.Arguments(),
	}
	cli.SideFlags(cmd, &flags.Side, "")
	cli.InstallFlags(cmd, &flags.Installation)
	cli.AllNodesFlag(cmd, &flags.Installation)
	return cli.Action[peering.InitOptions, peering.InitResult]{
		Do: do, Plan: peering.PlanInit, Text: describeInstallation, Timeout: &flags.Timeout, BySize: true, Ignored: []string{"wait", "yes"},
		Verdict: func(r peering.InitResult) error { return verifiedAll(r.Unverified...) },
		Options: func([]string) (peering.InitOptions, error) {
			o, err := flags, cli.CheckSide(flags.Side)
			if err != nil {
				return o, err
			}
			if o.Side.Cluster, err = local.Connect(env); err != nil {
				return o, err
			}
			o.Installation = cli.Installation(env, o.Installation)
			return o, err
		},
	}.Command(env, cmd)
}
