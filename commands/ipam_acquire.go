package commands

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// acquireFlags are the flags of `ipam acquire`.
type acquireFlags struct {
	owner     string
	preferred netip.Prefix
	output    format
}

func newIPAMAcquire(env *Env, connect connector) *cobra.Command {
	f := acquireFlags{output: formatText}
	cmd := &cobra.Command{
		Use:   "acquire /LENGTH --owner NAME",
		Short: "Reserve a free address range of some size",
		Long: `Reserve a free address range of some size, and print it and nothing else. Who acquires again under the same name
is given the same range. The exit code is 4 when no such range is free.`,
		Example: `  range=$(liqoctl ipam acquire /24 --owner "ci-$JOB_ID")
  liqoctl ipam acquire /24 --owner vpn --prefer 10.9.0.0/24`,
		Args: arguments("/LENGTH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.request(args[0])
			if err != nil {
				return err
			}
			c, err := connect(cmd.Context())
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), env, c, q)
		},
	}
	ownerFlag(cmd, &f.owner, "`NAME` of who needs the range: one name, one range")
	cmd.Flags().Var(prefix{&f.preferred}, "prefer", "range to take if it is free")
	enumFlag(cmd, &f.output, "output", "o", "how to print the range", formatText, formatWide, formatJSON, formatYAML)
	return cmd
}

func (f *acquireFlags) request(length string) (ipam.Request, error) {
	q := ipam.Request{Purpose: ipam.Reserved, Preferred: f.preferred}
	bits, err := strconv.ParseUint(strings.TrimPrefix(length, "/"), 10, 8)
	if err != nil || bits < 1 || bits > 32 {
		return q, usagef("%q is not a prefix length of /1 to /32", length)
	}
	if f.owner == "" {
		return q, usagef("no owner given: name one with --owner")
	}
	if q.Bits = int(bits); f.preferred.IsValid() && f.preferred.Bits() != q.Bits {
		return q, usagef("--prefer %s is not a /%d", f.preferred, q.Bits)
	}
	if q.Owner, err = userOwner(f.owner); err != nil {
		return q, err
	}
	if err := q.Validate(); err != nil {
		return q, usagef("--prefer: %w", err) // all else has been looked at
	}
	return q, nil
}

func (f *acquireFlags) run(ctx context.Context, env *Env, c *cluster.Cluster, q ipam.Request) error {
	var got ipam.Reservation
	err := store.New(c.Kube, c.Namespace).Update(ctx, func(r *ipam.Registry) (err error) {
		got, err = r.Acquire(q)
		return err
	})
	if err != nil {
		return explainReservation(c, err)
	}
	return printReservation(env, f.output, got)
}
