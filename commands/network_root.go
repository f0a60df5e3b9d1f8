package commands

import (
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/diagnose"
	"liqonet.io/liqonet/internal/hosts"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/removal"
	"liqonet.io/liqonet/internal/report"
	"liqonet.io/liqonet/internal/status"
	"liqonet.io/liqonet/internal/trace"
)

// newNetwork returns the commands of peerings.
func newNetwork(env *Env) *cobra.Command {
	cmd := group("network", "Connect clusters, and show and remove peerings", `
Connect clusters, and show and remove their peerings. kubectl's own flags choose the local cluster; the same flags with
the prefix --remote- choose the remote cluster.`, `
  liqoctl network connect --context a --remote-context b
  liqoctl network status --context a
  liqoctl network disconnect --context a --remote-context b`)
	local := newClusterFlags()
	local.register(cmd, cmd.PersistentFlags())
	cmd.AddCommand(
		newNetworkInit(env, local, peering.Init),
		newNetworkConnect(env, local, peering.Connect),
		newNetworkRender(env, local),
		newNetworkRotateKeys(env, local, peering.RotateKeys),
		newNetworkDisconnect(env, local, removal.Disconnect),
		newNetworkExpose(env, local, hosts.Expose),
		newNetworkUnexpose(env, local, hosts.Withdraw),
		newNetworkReset(env, local, removal.Reset),
		newNetworkStatus(env, local, statusActions{status.Read, status.Watch}),
		newNetworkTest(env, local, pathtest.Run),
		newNetworkDiagnose(env, local, diagnose.Run),
		newNetworkTrace(env, local, trace.Run),
		newNetworkReport(env, local, report.Run),
		newNetworkRole(env, local),
	)
	return cmd
}
