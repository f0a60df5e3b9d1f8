package commands

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// ipamList is the answer of `ipam list`.
type ipamList struct {
	Pools        []netip.Prefix     `json:"pools"`        // from which free ranges are taken
	Reservations []ipam.Reservation `json:"reservations"` // sorted by range
}

func newIPAMList(env *Env, connect connector) *cobra.Command {
	output := formatText
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the address ranges that are in use or reserved",
		Long: `List the address ranges of a cluster that are in use or reserved: its own, and those by which its peers are
reached. A range that stands for another one, real at the peer, shows that too.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := listReservations(cmd.Context(), env, store.New(c.Kube, c.Namespace), output); err != nil {
				return explainReservation(c, err)
			}
			return nil
		},
	}
	enumFlag(cmd, &output, "output", "o", "how to print the list", formatText, formatWide, formatJSON, formatYAML)
	return cmd
}

func listReservations(ctx context.Context, env *Env, s *store.Store, output format) error {
	registry, err := s.Load(ctx)
	if err != nil {
		return err
	}
	list := ipamList{Pools: registry.Pools(), Reservations: registry.List()}
	if output == formatJSON || output == formatYAML {
		return output.encode(env.Out, list)
	}
	return table(env.Out, reservationRows(list.Reservations, output))
}
