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
Connect clusters, and show and remove their peerings. --context and --kubeconfig select the local cluster,
--remote-context and --remote-kubeconfig its peer.`, `
  liqoctl network connect --context a --remote-context b
  liqoctl network status --context a
  liqoctl network disconnect --context a --remote-context b`)
	local := cli.NewClusterFlags()
	local.Register(cmd, cmd.PersistentFlags())
	for _, group := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{"Connect", []*cobra.Command{
			newConnect(env, local, peering.Connect),
			newDisconnect(env, local, removal.Disconnect),
			newStatus(env, local, statusActions{status.Read, status.Watch}),
		}},
		{"Check", []*cobra.Command{
			newTest(env, local, pathtest.Run),
			newDiagnose(env, local, diagnose.Run),
			newTrace(env, local, trace.Run),
			newReport(env, local, report.Run),
		}},
		{"Manage", []*cobra.Command{
			newExpose(env, local, expose.Expose),
			newUnexpose(env, local, expose.Withdraw),
			newRotateKeys(env, local, peering.RotateKeys),
			newRender(env, local),
			newRole(env, local),
		}},
		{"Install", []*cobra.Command{
			newInit(env, local, peering.Init),
			newReset(env, local, removal.Reset),
		}},
	} {
		cmd.AddGroup(&cobra.Group{ID: group.id, Title: group.id})
		for _, sub := range group.commands {
			sub.GroupID = group.id
		}
		cmd.AddCommand(group.commands...)
	}
	return cmd
}
