package ipam

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/ipam"
)

// releaseFlags are the flags and the argument of `ipam release`.
type releaseFlags struct {
	cidr  netip.Prefix // the zero value: all ranges of the owner
	owner ipam.Owner   // "": any user
}

func newIPAMRelease(env *cli.Env, connect connector) *cobra.Command {
	var f releaseFlags
	cmd := &cobra.Command{
		Use:   "release [CIDR] [--owner NAME]",
		Short: "Release reserved CIDRs",
		Long: `Release a CIDR that was reserved or acquired, or all CIDRs of an owner, and print what was released. CIDRs that the
cluster or a peering uses cannot be released. Releasing again changes nothing.`,
		Example: `  liqoctl ipam release 10.9.0.0/16
  liqoctl ipam release --owner "ci-$JOB_ID"`,
		Args: cli.Arguments("[CIDR]"),
	}
	ownerFlag(cmd, &f.owner, "owner whose CIDRs to release")
	return changingReservations(env, connect, cmd, func(args []string) (_ onReservations, err error) {
		if len(args) == 0 && f.owner == "" {
			return nil, cli.Usagef("a CIDR or --owner is required")
		}
		if len(args) > 0 {
			if f.cidr, err = ui.ParsePrefix(args[0]); err != nil {
				return nil, cli.Usagef("%w", err)
			}
		}
		return func(ctx context.Context, c *kube.Cluster) (reservations, error) {
			released := []ipam.Reservation{} // in JSON a list as well
			err := inventory.UpdateReservations(ctx, c, func(r *ipam.Registry) error {
				found, err := f.release(r)
				released = append([]ipam.Reservation{}, found...)
				return err
			})
			if err == nil && len(released) == 0 {
				env.Progress.Note("not reserved: nothing changed")
			}
			return reservations{document: released, all: released}, err
		}, nil
	})
}

// release removes the selected reservations from a registry and returns them.
func (f *releaseFlags) release(r *ipam.Registry) ([]ipam.Reservation, error) {
	if !f.cidr.IsValid() {
		return r.Release(f.owner, ipam.Reserved)
	}
	var released []ipam.Reservation
	var refused error
	for _, h := range r.Overlapping(f.cidr) {
		switch {
		case h.Range != f.cidr:
		case h.Purpose != ipam.Reserved:
			refused = hint.With(fmt.Errorf("release %s: in use: %s", f.cidr, h.Use()), inUseHint(h))
		case f.owner != "" && h.Owner != f.owner:
			name, _ := f.owner.User()
			refused = fmt.Errorf("release %s of user %q: held by another owner: %s", f.cidr, name, h.Use())
		default:
			if err := r.ReleaseRange(h.Owner, h.Purpose, h.Range); err != nil {
				return nil, err
			}
			released = append(released, h)
		}
	}
	if len(released) == 0 {
		return nil, refused
	}
	return released, nil
}

// inUseHint returns the command that ends the use of a range.
func inUseHint(h ipam.Reservation) string {
	if name, ok := h.Owner.Peering(); ok {
		return "liqoctl network disconnect " + name + " --remote-context CONTEXT; if there is no such peering: liqoctl network disconnect " + name + " --one-side"
	}
	return "liqoctl network reset"
}
