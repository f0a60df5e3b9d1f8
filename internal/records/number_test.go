package records_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"go4.org/netipx"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

// TestNumbers checks what follows from the number of a peering, in the narrowest, the widest and the default internal
// CIDR: addresses in the upper half, 24 bits of overlay ID, and both unique in the cluster.
func TestNumbers(t *testing.T) {
	for text, most := range map[string]int{"10.80.0.0/24": 15, "10.80.0.0/16": 4095, "10.0.0.0/8": 1<<20 - 1, "255.255.255.0/24": 15} {
		internal := netip.MustParsePrefix(text)
		if got := records.MaxPeerings(internal); got != most {
			t.Errorf("%s: %d peerings, want %d", internal, got, most)
		}
		_, upper := cidr.Halves(internal)
		for _, number := range []int{1, 2, 1 + rand.IntN(most), most} {
			p := records.Peering{Number: number, Gateways: make([]records.LocalGateway, records.MaxGateways)}
			block := records.GatewayAddresses(internal, number)
			if block != block.Masked() || !cidr.Covers(upper, block) || block.Addr() == upper.Addr() {
				t.Errorf("%s: peering %d has %s", internal, number, block)
			}
			for i := range records.MaxGateways {
				a, id := p.GatewayAddress(internal, i+1), p.OverlayID(i+1)
				if !block.Contains(a) || cidr.Offset(upper, a) != id || id == 0 || id >= 1<<24 || records.NumberOf(internal, a) != number {
					t.Errorf("%s: gateway %d of peering %d has %s, overlay %d, back %d", internal, i+1, number, a, id, records.NumberOf(internal, a))
				}
			}
		}
		if last := records.GatewayAddresses(internal, most); netipx.PrefixLastIP(last) != netipx.PrefixLastIP(internal) {
			t.Errorf("%s: the last peering has %s", internal, last)
		}
		for _, other := range []netip.Addr{internal.Addr(), internal.Addr().Prev(), upper.Addr().Prev(), upper.Addr(), netipx.PrefixLastIP(internal).Next(), netip.MustParseAddr("0.0.0.0")} {
			if !other.Is4() { // beyond the last address there is
				continue
			}
			if n := records.NumberOf(internal, other); n >= 1 && n <= most {
				t.Errorf("%s: %s has number %d", internal, other, n)
			}
		}
	}
}

// TestTunnelAddresses: both ends agree, and the 64 tunnels of a peering have different addresses.
func TestTunnelAddresses(t *testing.T) {
	seen := map[netip.Addr]bool{}
	server, client := records.Peering{Role: records.Server}, records.Peering{Role: records.Client}
	for i := range records.MaxGateways {
		for j := range records.MaxGateways {
			s, seesClient := server.TunnelAddresses(i+1, j+1)
			c, seesServer := client.TunnelAddresses(j+1, i+1)
			if s.Addr() != seesServer || c.Addr() != seesClient || s.Masked() != c.Masked() || s.Bits() != 30 || seen[s.Addr()] || seen[c.Addr()] {
				t.Errorf("tunnel %d-%d: %s sees %s, %s sees %s", i+1, j+1, s, seesClient, c, seesServer)
			}
			seen[s.Addr()], seen[c.Addr()] = true, true
		}
	}
}
