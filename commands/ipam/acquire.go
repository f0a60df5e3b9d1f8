package ipam

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/ipam"
)

func newIPAMAcquire(env *cli.Env, connect connector) *cobra.Command {
	q := ipam.Request{Purpose: ipam.Reserved}
	cmd := &cobra.Command{
		Use:   "acquire /LENGTH --owner NAME",
		Short: "Reserve a free CIDR of a given size",
		Long: `Reserve a free CIDR of a given size, and print only the CIDR. The same owner gets the same CIDR again. The exit code is 4
if no such CIDR is free.`,
		Example: `  range=$(liqoctl ipam acquire /24 --owner "ci-$JOB_ID")
  liqoctl ipam acquire /24 --owner vpn --prefer 10.9.0.0/24`,
		Args: cli.Arguments("/LENGTH"),
	}
	ownerFlag(cmd, &q.Owner, "owner of the CIDR (required); an owner has one")
	ui.PrefixFlag(cmd.Flags(), &q.Preferred, "prefer", "CIDR to take if it is free")
	return changingReservations(env, connect, cmd, func(args []string) (onReservations, error) {
		bits, err := strconv.ParseUint(strings.TrimPrefix(args[0], "/"), 10, 8)
		switch q.Bits = int(bits); {
		case err != nil || bits < 1 || bits > 32:
			return nil, cli.Usagef("%q is not a prefix length of /1 to /32", args[0])
		case q.Owner == "":
			return nil, cli.Usagef("--owner is required")
		case q.Preferred.IsValid() && q.Preferred.Bits() != q.Bits:
			return nil, cli.Usagef("--prefer %s is not a /%d", q.Preferred, q.Bits)
		}
		if err := q.Validate(); err != nil {
			return nil, cli.Usagef("--prefer: %w", err) // all else has been checked
		}
		return func(ctx context.Context, c *kube.Cluster) (reservations, error) {
			var got ipam.Reservation
			err := addReservations(ctx, c, func(r *ipam.Registry) (err error) {
				got, err = r.Acquire(q)
				return err
			})
			return reservations{document: got, all: []ipam.Reservation{got}}, err
		}, nil
	})
}
