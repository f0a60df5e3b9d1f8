package commands

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/ipam"
)

// ipamAnswer is the answer of `ipam show`.
type ipamAnswer struct {
	Range        netip.Prefix       `json:"range,omitzero"` // that was asked for
	Owner        ipam.Owner         `json:"owner,omitempty"`
	Free         bool               `json:"free"`             // nothing is held
	Holder       *ipam.Reservation  `json:"holder,omitempty"` // of the one address that was asked for: the most specific
	Reservations []ipam.Reservation `json:"reservations"`
}

func newIPAMShow(env *Env, connect connector) *cobra.Command {
	return reservationCommand(env, connect, &cobra.Command{
		Use:   "show ADDRESS|CIDR|OWNER",
		Short: "Show the holder of an address or a range, or the ranges of an owner",
		Long: `Show the holder of an address, the reservations that overlap a range, or the ranges of an owner: cluster, peering/NAME
or user/NAME. Wider ranges come first. The holder of an address is the holder of the smallest range that contains it.`,
		Example: `  liqoctl ipam show 10.71.3.7
  liqoctl ipam show 10.0.0.0/9
  liqoctl ipam show peering/b -o json`,
		Args: arguments("ADDRESS|CIDR|OWNER"),
	}, func(args []string) (func(context.Context, *cluster.Cluster) (reservations, error), error) {
		ask, err := question(args[0])
		return ask.run, err
	})
}

// question reads what is asked for.
func question(text string) (ipamAnswer, error) {
	if owner := ipam.Owner(text); owner.Validate() == nil {
		return ipamAnswer{Owner: owner}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return ipamAnswer{Range: netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())}, nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return ipamAnswer{}, usagef("%q is not an IP address, a CIDR such as 10.244.0.0/16, cluster, peering/NAME or user/NAME", text)
	}
	return ipamAnswer{Range: p.Masked()}, nil
}

func (ask ipamAnswer) run(ctx context.Context, c *cluster.Cluster) (reservations, error) {
	registry, err := inventory.Reservations(ctx, c)
	if err != nil {
		return reservations{}, err
	}
	free := fmt.Sprintf("%s is free", ask.Range)
	if ask.Owner != "" {
		ask.Reservations, free = registry.Held(ask.Owner), fmt.Sprintf("%s holds nothing", ask.Owner)
	} else {
		ask.Reservations = registry.Overlapping(ask.Range)
	}
	r := reservations{all: ask.Reservations, table: true}
	if holder, ok := registry.OwnerOf(ask.Range.Addr()); ok && ask.Range.IsSingleIP() {
		ask.Holder = &holder
		r.summary = fmt.Sprintf("%s is held: %s %s", ask.Range.Addr(), holder.Use(), holder.Range)
	}
	if ask.Free = len(r.all) == 0; ask.Free {
		ask.Reservations, r.summary = []ipam.Reservation{}, free // a list in JSON too
	}
	r.document = ask
	return r, nil
}
