package ipam

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

func TestIPAMList(t *testing.T) {
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{})
	err := inventory.UpdateReservations(t.Context(), c, func(r *ipam.Registry) error {
		return errors.Join(
			r.Reserve(ipam.Reservation{Range: netip.MustParsePrefix("10.244.0.0/16"), Owner: ipam.Cluster, Purpose: ipam.PodCIDR}),
			r.Reserve(ipam.Reservation{Range: netip.MustParsePrefix("10.11.0.0/16"), Real: netip.MustParsePrefix("10.244.0.0/16"), Owner: ipam.Peering("b"), Purpose: ipam.PeerPods}),
		)
	})
	require.NoError(t, err)
	var out strings.Builder
	env := &cli.Env{Out: &out}
	r, err := listFilter{}.list(t.Context(), c)
	require.NoError(t, errors.Join(err, r.print(env, ui.FormatText)))
	golden.Check(t, "ipam-list.golden", out.String())
	out.Reset()
	require.NoError(t, r.print(env, ui.FormatJSON))
	var got ipamList
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	if len(got.Pools) == 0 || len(got.Reservations) != 2 || got.Reservations[0].Real != netip.MustParsePrefix("10.244.0.0/16") {
		t.Errorf("JSON answer %s", out.String())
	}
}
