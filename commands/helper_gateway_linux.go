package commands

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/helper"
)

// helperGatewayFlags are the flags of `helper gateway`.
type helperGatewayFlags struct {
	helperFlags
	peering string
	gateway string
	pod     string
	podIP   string
	keys    string
}

// newHelperGateway returns the command that a gateway's Deployment runs.
func newHelperGateway(env *Env, run func(helper.Gateway, context.Context) error) *cobra.Command {
	var f helperGatewayFlags
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Reconcile the kernel of a gateway pod",
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := f.options(env)
			if err != nil {
				return err
			}
			if err := addClient(env, &g.Env); err != nil {
				return err
			}
			return run(g, cmd.Context())
		},
	}
	f.register(cmd, ":6093")
	flags := cmd.Flags()
	flags.StringVar(&f.peering, "peering", "", "`NAME` of the peering to serve (default: $PEERING)")
	flags.StringVar(&f.gateway, "gateway", "", "`NUMBER` of this gateway of the peering (default: $GATEWAY, else 1)")
	flags.StringVar(&f.pod, "pod", "", "`NAME` of this pod (default: $POD_NAME)")
	flags.StringVar(&f.podIP, "pod-ip", "", "`ADDRESSES` of this pod, of which the first IPv4 one counts (default: $POD_IP)")
	flags.StringVar(&f.keys, "keys", "/etc/liqonet/keys", "`FOLDER` of the peering's keys")
	return cmd
}

func (f *helperGatewayFlags) options(env *Env) (g helper.Gateway, err error) {
	if g.Env, g.Node, err = f.helperFlags.options(env); err != nil {
		return g, err
	}
	var ip string
	err = given(env, required{&g.ID.Peering, "peering", f.peering, "PEERING"}, required{&g.Pod, "pod", f.pod, "POD_NAME"},
		required{&ip, "pod-ip", f.podIP, "POD_IP"})
	if err != nil {
		return g, err
	}
	if g.PodIP, err = firstIPv4(ip); err != nil {
		return g, usagef("--pod-ip: %w", err)
	}
	g.Keys = f.keys
	g.ID.Number, err = gatewayCount(cmp.Or(f.gateway, env.variable("GATEWAY"), "1"))
	if err != nil {
		return g, usagef("--gateway: %w", err)
	}
	return g, nil
}

// firstIPv4 reads addresses, separated by commas as in a pod's status.podIPs.
func firstIPv4(text string) (netip.Addr, error) {
	for field := range strings.SplitSeq(text, ",") {
		a, err := netip.ParseAddr(field)
		if err != nil || a.Is4() {
			return a, err
		}
	}
	return netip.Addr{}, fmt.Errorf("no IPv4 address in %q", text)
}
