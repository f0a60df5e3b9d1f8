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

// ipamAnswer is the answer of `ipam show`.
type ipamAnswer struct {
	Range        netip.Prefix       `json:"range,omitzero"` // that was asked for
	Owner        ipam.Owner         `json:"owner,omitempty"`
	Free         bool               `json:"free"`             // nothing is held
	Holder       *ipam.Reservation  `json:"holder,omitempty"` // of the one address that was asked for: the most specific
	Reservations []ipam.Reservation `json:"reservations"`
}

func newIPAMShow(env *Env, connect connector) *cobra.Command {
	output := formatText
	cmd := &cobra.Command{
		Use:   "show ADDRESS|CIDR|OWNER",
		Short: "Show who holds an address or a range, or what an owner holds",
		Long: `Show who holds an address, which reservations overlap a range, or what an owner holds: cluster, peering/NAME or
user/NAME. Ranges around what is asked for come first. The holder of an address is that of the smallest of them.`,
		Example: `  liqoctl ipam show 10.71.3.7
  liqoctl ipam show 10.0.0.0/9
  liqoctl ipam show peering/b -o json`,
		Args: arguments("ADDRESS|CIDR|OWNER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ask, err := question(args[0])
			if err != nil {
				return err
			}
			c, err := connect(cmd.Context())
			if err != nil {
				return err
			}
			return showReservations(cmd.Context(), env, c, ask, output)
		},
	}
	enumFlag(cmd, &output, "output", "o", "how to print the answer", formatText, formatWide, formatJSON, formatYAML)
	return cmd
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
		return ipamAnswer{}, usagef("%q is not an address, a range such as 10.244.0.0/16, cluster, peering/NAME or user/NAME", text)
	}
	return ipamAnswer{Range: p.Masked()}, nil
}

func showReservations(ctx context.Context, env *Env, c *cluster.Cluster, ask ipamAnswer, output format) error {
	registry, err := store.New(c.Kube, c.Namespace).Load(ctx)
	if err != nil {
		return explainReservation(c, err)
	}
	what := string(ask.Owner)
	if ask.Owner != "" {
		ask.Reservations = registry.Held(ask.Owner)
	} else {
		ask.Reservations, what = registry.Overlapping(ask.Range), ask.Range.String()
	}
	if holder, ok := registry.OwnerOf(ask.Range.Addr()); ok && ask.Range.IsSingleIP() {
		ask.Holder = &holder
	}
	ask.Free = len(ask.Reservations) == 0
	switch {
	case output == formatJSON || output == formatYAML:
		if ask.Free {
			ask.Reservations = []ipam.Reservation{} // a list in JSON too
		}
		return output.encode(env.Out, ask)
	case ask.Free && ask.Owner != "":
		_, err = fmt.Fprintf(env.Out, "%s holds nothing\n", what)
		return err
	case ask.Free:
		_, err = fmt.Fprintf(env.Out, "%s is free\n", what)
		return err
	}
	if ask.Holder != nil {
		if _, err := fmt.Fprintf(env.Out, "%s is held: %s %s\n\n", ask.Range.Addr(), ask.Holder.Use(), ask.Holder.Range); err != nil {
			return err
		}
	}
	return table(env.Out, reservationRows(ask.Reservations, output))
}
