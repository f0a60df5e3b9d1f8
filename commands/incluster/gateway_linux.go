package incluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/helper/gateway"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// newHelperGateway returns the command that a gateway's Deployment runs. Its arguments show the
// gateway in lists of processes; the variables contain the same.
func newHelperGateway(env *cli.Env, run func(gateway.Helper, context.Context) error) *cobra.Command {
	var id records.GatewayID
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Reconcile the kernel of a gateway pod",
		Args:  cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := gatewayOptions(env, id)
			if err != nil {
				return err
			}
			if err := addClient(env, &g.Env); err != nil {
				return err
			}
			return run(g, cmd.Context())
		},
	}
	ui.TextFlag(cmd.Flags(), &id.Peering, "peering", "NAME", "peering to serve (default: $PEERING)", nil)
	ui.AddFlag(cmd.Flags(), &id.Number, "gateway", "NUMBER", "number of this gateway of the peering (default: $GATEWAY, else 1)", ui.GatewayCount)
	return cmd
}

// gatewayOptions returns the options of a gateway's helper, without a client. Values that are not in flags come from
// variables.
func gatewayOptions(env *cli.Env, id records.GatewayID) (g gateway.Helper, err error) {
	g.ID, g.Keys, g.KeyID, g.Epoch = id, templates.KeysPath, env.Variable("KEY_ID"), templates.EpochPath
	if g.Env, g.Node, err = helperEnv(env, ""); err != nil {
		return g, err
	}
	var addresses string
	if err := given(env, map[string]*string{"PEERING": &g.ID.Peering, "POD_NAME": &g.Pod, "POD_IP": &addresses}); err != nil {
		return g, err
	}
	if g.PodIP, err = firstIPv4(addresses); err != nil {
		return g, cli.Usagef("$POD_IP: %w", err)
	}
	if g.ID.Number == 0 {
		if g.ID.Number, err = ui.GatewayCount(cmp.Or(env.Variable("GATEWAY"), "1")); err != nil {
			return g, cli.Usagef("$GATEWAY: %w", err)
		}
	}
	return g, nil
}

// firstIPv4 returns the first IPv4 address in a text, separated by commas as in a pod's status.podIPs.
func firstIPv4(text string) (netip.Addr, error) {
	for field := range strings.SplitSeq(text, ",") {
		a, err := netip.ParseAddr(field)
		if err != nil || a.Is4() {
			return a, err
		}
	}
	return netip.Addr{}, fmt.Errorf("no IPv4 address in %q", text)
}
