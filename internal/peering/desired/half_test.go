package desired

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
)

// meet exchanges offers until both halves have decided what they can.
func meet(a, b *Half) (errs [2]error) {
	exchange := func() { a.Peer, b.Peer = b.Offer(), a.Offer() }
	exchange()
	for i, h := range []*Half{a, b} {
		h.Role, h.Settings, errs[i] = h.Choose()
	}
	exchange()
	if errs != [2]error{} {
		return errs
	}
	for i, h := range []*Half{a, b} {
		h.Settings, errs[i] = h.AgreedSettings()
	}
	exchange()
	return errs
}

// recordOf returns a record with a role and numbers of gateways.
func recordOf(role records.Role, mtu, gateways, peers int) *records.Peering {
	p := &records.Peering{Role: role, MTU: mtu}
	for range gateways {
		p.Gateways = append(p.Gateways, records.LocalGateway{Tunnels: make([]records.Tunnel, peers)})
	}
	return p
}

// TestHalvesAgree lets two halves with random facts and wishes decide: what is a value of both is the same in both, and
// does not depend on who is called the local one.
func TestHalvesAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	agreed := 0
	for range 20_000 {
		one := func(name string, initial records.Role) Half {
			h := Half{Cluster: records.Party{ID: name, Name: name}, Wanted: Wanted{Initial: initial, Gateways: random.IntN(4)}}
			h.Fabric.MTU, h.Fabric.ExternalCIDRs = 1500*random.IntN(3), []netip.Prefix{netip.MustParsePrefix("10.70.0.0/16")}
			h.Sizes = Sizes{Gateways: 1400 * random.IntN(2), Overlay: 1450 * random.IntN(2)}
			if random.IntN(2) == 0 {
				h.Sizes.Unmeasured = []string{"all"}
			}
			if random.IntN(2) == 0 {
				h.Recorded = recordOf([]records.Role{records.Server, records.Client}[random.IntN(2)], 1280+random.IntN(200), 1+random.IntN(3), 1+random.IntN(3))
			}
			if random.IntN(2) == 0 {
				h.Wanted.Settings.MTU = new(1300)
			}
			return h
		}
		a, b := one("a", records.Client), one("b", records.Server)
		if random.IntN(3) == 0 {
			serves := random.IntN(2) == 0
			a.Wanted.Serves, b.Wanted.Serves = &serves, new(!serves)
		}
		errs := meet(&a, &b)
		if (errs[0] == nil) != (errs[1] == nil) {
			t.Fatalf("one half refuses: %v\n%+v\n%+v", errs, a, b)
		}
		if errs[0] != nil {
			continue
		}
		agreed++
		shared := func(h Half) string {
			return fmt.Sprint(*h.Settings.Complete().MTU, h.FittingMTU(h.Recorded), Narrowest(Hops(h.Offer(), h.Peer)))
		}
		if a.Role == b.Role || shared(a) != shared(b) || a.Gateways() != b.PeerGateways() || b.Gateways() != a.PeerGateways() {
			t.Fatalf("they differ: %s and %s\n%+v\n%+v", shared(a), shared(b), a, b)
		}
	}
	if agreed < 10_000 {
		t.Errorf("only %d agreed", agreed)
	}
}

// TestUnmeasuredHops checks that if hops are not measured, the MTU is that of the links, and an existing MTU does not
// rise.
func TestUnmeasuredHops(t *testing.T) {
	known := Sizes{Gateways: 1500, Overlay: 1500}
	h, peer := Half{Sizes: known}, Half{Sizes: known}
	fitting := func(h, peer Half) int {
		h.Peer = peer.Offer()
		return h.FittingMTU(h.Recorded)
	}
	assert.Equal(t, "before the nodes have reported", 0, fitting(h, peer))
	h.Fabric.MTU, peer.Fabric.MTU = 1500, 9000
	assert.Equal(t, "all is measured", 1420, fitting(h, peer))
	peer.Recorded = recordOf(records.Client, 1380, 1, 1)
	assert.Equal(t, "all is measured, the MTU was less", 1420, fitting(h, peer))
	h.Sizes = SizesOf(&records.Status{}, []string{"n1"})
	assert.Equal(t, "not all is measured, the MTU was less", [2]int{1380, 1380}, [2]int{fitting(h, peer), fitting(peer, h)})
}

func TestEndpointSummary(t *testing.T) {
	got := EndpointSummary([]string{"192.0.2.2:30840", "192.0.2.1:30840", "192.0.2.2:30841", "192.0.2.1:30841"})
	if want := "192.0.2.1, 192.0.2.2, UDP 30840, 30841"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPoorOffers checks that an offer that lacks what a decision needs is an error.
func TestPoorOffers(t *testing.T) {
	for name, change := range map[string]func(*records.Offer){
		"no settings": func(o *records.Offer) { o.Settings = nil },
		"no ranges":   func(o *records.Offer) { o.Ranges = records.Ranges{} },
		"no gateways": func(o *records.Offer) { o.Gateways = nil },
		"same role":   func(o *records.Offer) { o.Role = records.Client },
	} {
		good := records.Offer{
			Role: records.Server, Settings: &records.GatewaySettings{}, Gateways: make([]records.OfferedGateway, 1),
			Ranges: records.Ranges{ExternalCIDRs: []netip.Prefix{netip.MustParsePrefix("10.70.0.0/16")}},
		}
		h := Half{Role: records.Client, Peer: good}
		if _, err := h.AgreedSettings(); err != nil {
			t.Errorf("a good offer: %v", err)
		}
		change(&h.Peer)
		if _, err := h.AgreedSettings(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
