// Package network has the commands of peerings, a file for each.
package network

import (
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/inspect/diagnose"
	"liqonet.io/liqonet/internal/inspect/report"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inspect/trace"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/removal"
)

// New returns the commands of peerings.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("network", "Connect clusters, and show and remove peerings", `
Connect clusters, and show and remove their peerings. kubectl's own flags choose the local cluster; the same flags with
the prefix --remote- choose the remote cluster.`, `
  liqoctl network connect --context a --remote-context b
  liqoctl network status --context a
  liqoctl network disconnect --context a --remote-context b`)
	local := cli.NewClusterFlags()
	local.Register(cmd, cmd.PersistentFlags())
	cmd.AddCommand(
		newInit(env, local, peering.Init),
		newConnect(env, local, peering.Connect),
		newRender(env, local),
		newRotateKeys(env, local, peering.RotateKeys),
		newDisconnect(env, local, removal.Disconnect),
		newExpose(env, local, expose.Expose),
		newUnexpose(env, local, expose.Withdraw),
		newReset(env, local, removal.Reset),
		newStatus(env, local, statusActions{status.Read, status.Watch}),
		newTest(env, local, pathtest.Run),
		newDiagnose(env, local, diagnose.Run),
		newTrace(env, local, trace.Run),
		newReport(env, local, report.Run),
		newRole(env, local),
	)
	return cmd
}
