package commands

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// releaseFlags are the flags and the argument of `ipam release`.
type releaseFlags struct {
	cidr   netip.Prefix // the zero value: all that the owner holds
	owner  string       // "": anybody who reserved the range
	output format
}

func newIPAMRelease(env *Env, connect connector) *cobra.Command {
	f := releaseFlags{output: formatText}
	cmd := &cobra.Command{
		Use:   "release [CIDR] [--owner NAME]",
		Short: "Give back what was reserved or acquired",
		Long: `Give back a range that was reserved or acquired, or all that a name holds, and print what is free again. What the
cluster itself or a peering uses cannot be released so. Releasing again changes nothing.`,
		Example: `  liqoctl ipam release 10.9.0.0/16
  liqoctl ipam release --owner "ci-$JOB_ID"`,
		Args: arguments("[CIDR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.complete(args); err != nil {
				return err
			}
			c, err := connect(cmd.Context())
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), env, c)
		},
	}
	ownerFlag(cmd, &f.owner, "`NAME` of who holds it")
	enumFlag(cmd, &f.output, "output", "o", "how to print what is released", formatText, formatWide, formatJSON, formatYAML)
	return cmd
}

func (f *releaseFlags) complete(args []string) error {
	if len(args) == 0 && f.owner == "" {
		return usagef("nothing to release given: name a range, or an owner with --owner")
	}
	var err error
	if len(args) > 0 {
		if f.cidr, err = parsePrefix(args[0]); err != nil {
			return usagef("%w", err)
		}
	}
	if f.owner != "" {
		_, err = userOwner(f.owner)
	}
	return err
}

func (f *releaseFlags) run(ctx context.Context, env *Env, c *cluster.Cluster) error {
	var released []ipam.Reservation
	err := store.New(c.Kube, c.Namespace).Update(ctx, func(r *ipam.Registry) (err error) {
		released, err = f.release(r)
		return err
	})
	if err != nil {
		return explainReservation(c, err)
	}
	if len(released) == 0 && f.output == formatText {
		env.progress.Note("nothing was reserved there: nothing changed")
	}
	return printReservations(env, f.output, released)
}

// release takes what is meant out of a registry and returns it.
func (f *releaseFlags) release(r *ipam.Registry) ([]ipam.Reservation, error) {
	if !f.cidr.IsValid() {
		return r.Release(ipam.User(f.owner), ipam.Reserved)
	}
	var released []ipam.Reservation
	var refused error
	for _, h := range r.Overlapping(f.cidr) {
		switch {
		case h.Range != f.cidr:
		case h.Purpose != ipam.Reserved:
			refused = withHint(fmt.Errorf("release %s: it is in use: %s", f.cidr, h.Use()), inUseHint(h))
		case f.owner != "" && h.Owner != ipam.User(f.owner):
			refused = fmt.Errorf("release %s of user %q: it is held by another: %s", f.cidr, f.owner, h.Use())
		default:
			released = append(released, h)
		}
	}
	if len(released) == 0 {
		return nil, refused
	}
	for _, h := range released {
		if err := r.ReleaseRange(h.Owner, h.Purpose, h.Range); err != nil {
			return nil, err
		}
	}
	return released, nil
}

// inUseHint names the command that ends the use of a range.
func inUseHint(h ipam.Reservation) string {
	if name, ok := h.Owner.Peering(); ok {
		return "liqoctl network disconnect " + name + "; if there is no such peering: liqoctl ipam check --repair"
	}
	return "liqoctl network reset"
}
