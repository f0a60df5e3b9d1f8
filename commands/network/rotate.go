package network

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
)

// rotateTimeout is enough for eight gateways in each cluster: one takes up to half a minute.
const rotateTimeout = 10 * time.Minute

func newRotateKeys(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[peering.RotateOptions, peering.Rotation]) *cobra.Command {
	o := peering.RotateOptions{Timeout: rotateTimeout}
	cmd := &cobra.Command{
		Use:   "rotate-keys [PEER]",
		Short: "Replace the WireGuard keys of a peering",
		Long: `Replace the private key of every gateway of a peering, in both clusters. Gateways are replaced one after the other: each
drains while others carry its packets, and the next one follows when full-size packets were verified with the new key.
If a cluster has one gateway, a temporary second one carries packets meanwhile; the server's needs a further port, as with
network connect --gateways 2. Some packets may be lost when the temporary gateway starts and stops.

The preshared key, the settings and the CIDRs of the peering stay. If a cluster has other CIDRs by now, the command ends with
an error: network connect --update adopts them. What else differs, such as gateways of another release of liqoctl, is
changed as by network connect --update: see it with --dry-run. Packets of every Ready node must be verified. If the command
fails or is interrupted, run it again: it completes the peering, and replaces all keys.`,
		Example: `  liqoctl network rotate-keys --context a --remote-context b

  # What would change
  liqoctl network rotate-keys --context a --remote-context b --dry-run`,
		Args: cli.Arguments("[PEER]"),
	}
	clusters := cli.NewTwoClusters(cmd, local)
	return cli.Action[peering.RotateOptions, peering.Rotation]{
		Do: do, Plan: peering.PlanRotateKeys, Text: describeRotation, Timeout: &o.Timeout, Ignored: []string{"skip-validation"},
		Options: func(args []string) (_ peering.RotateOptions, err error) {
			if len(args) > 0 {
				o.Peer = args[0]
				if err := records.ValidateName(o.Peer); err != nil {
					return o, cli.Usagef("%w", err)
				}
			}
			o.Local, o.Remote, err = clusters.Connect(env)
			return o, err
		},
	}.Command(env, cmd)
}

// describeRotation formats the answer of `network rotate-keys` as text.
func describeRotation(b *strings.Builder, r peering.Rotation) {
	for _, g := range r.Gateways {
		ui.Writef(b, "%s: gateway %d has public key %s\n", g.Cluster, g.Gateway, g.PublicKey)
	}
	ui.Writef(b, "%d of %d keys of the peering with %s replaced and verified (%s)\n", len(r.Gateways), len(r.Gateways), r.Peer, ui.Seconds(time.Duration(r.Took)))
}
