package records_test

import (
	"net/netip"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// offer returns the offer of a server that knows everything.
func offer() records.Offer {
	p, pfx := peering(), netip.MustParsePrefix
	return records.Offer{
		Version: records.SchemaVersion, Cluster: records.Party{ID: "uid-a", Name: "a"},
		Ranges: records.Ranges{
			PodCIDRs: []netip.Prefix{pfx("10.244.0.0/16")}, ExternalCIDRs: []netip.Prefix{pfx("10.70.0.0/16")}, NodeNetworks: []netip.Prefix{pfx("192.0.2.0/24")},
		},
		Assigned: p.Local, Role: records.Server, Settings: &records.GatewaySettings{MTU: new(1400)}, OnePort: true,
		Recorded: &records.Recorded{Role: records.Server, MTU: 1400, Gateways: 1, Endpoints: [][][]string{{nil, {"192.0.2.1:1"}}}, WebSocket: [][]string{nil, {"wss://192.0.2.1:443/"}}},
		Hops:     records.Hops{Links: 1500, Overlay: 1450, Tunnel: 1500, Complete: true},
		Gateways: []records.OfferedGateway{{Driver: driver, Replaced: true, Endpoints: [][]string{{"gate.example:51840"}}, WebSocket: []string{"wss://gate.example:443/"}}},
		Seal:     []byte{1, 2}, Preshared: &records.Sealed{ID: "ab", Ciphertext: []byte{3}},
	}
}

func TestOfferRoundTrip(t *testing.T) {
	want := offer()
	text, err := records.Encode(want)
	require.NoError(t, err)
	got, err := records.Decode[records.Offer](text + "later: {field: 1}\n")
	require.NoError(t, err)
	assert.Equal(t, "after encode and decode", want, got, comparable)
}

// TestOffersRefused checks the bounds of an offer, whose author is another cluster.
func TestOffersRefused(t *testing.T) {
	many := strings.Fields(strings.Repeat("192.0.2.1:1 ", 65))
	for name, change := range map[string]func(*records.Offer){
		"name":              func(o *records.Offer) { o.Cluster.Name = "A" },
		"no ID":             func(o *records.Offer) { o.Cluster.ID = "" },
		"ID with an escape": func(o *records.Offer) { o.Cluster.ID = "\x1b[2J" },
		"long ID":           func(o *records.Offer) { o.Cluster.ID = strings.Repeat("x", 129) },
		"IPv6":              func(o *records.Offer) { o.Ranges.PodCIDRs[0] = netip.MustParsePrefix("2001:db8::/64") },
		"host bits":         func(o *records.Offer) { o.Ranges.NodeNetworks[0] = netip.MustParsePrefix("192.0.2.1/24") },
		"no external CIDR":  func(o *records.Offer) { o.Ranges.ExternalCIDRs = nil },
		"external CIDR":     func(o *records.Offer) { o.Ranges.ExternalCIDRs[0] = netip.MustParsePrefix("10.0.0.0/30") },
		"pod CIDRs":         func(o *records.Offer) { o.Ranges.PodCIDRs = make([]netip.Prefix, 65) },
		"role":              func(o *records.Offer) { o.Role = "king" },
		"settings":          func(o *records.Offer) { o.Settings.MTU = new(7) },
		"recorded role":     func(o *records.Offer) { o.Recorded.Role = "" },
		"recorded MTU":      func(o *records.Offer) { o.Recorded.MTU = 1 },
		"recorded gateways": func(o *records.Offer) { o.Recorded.Gateways = 0 },
		"recorded endpoint": func(o *records.Offer) { o.Recorded.Endpoints[0][1][0] = "192.0.2.1" },
		"recorded URL":      func(o *records.Offer) { o.Recorded.WebSocket[1][0] = "wss://192.0.2.1" },
		"recorded URLs":     func(o *records.Offer) { o.Recorded.WebSocket = make([][]string, 9) },
		"hop":               func(o *records.Offer) { o.Hops.Overlay = 100_000 },
		"gateways":          func(o *records.Offer) { o.Gateways = make([]records.OfferedGateway, 9) },
		"driver":            func(o *records.Offer) { o.Gateways[0].Driver.WireGuard.PublicKey = "x" },
		"tunnels":           func(o *records.Offer) { o.Gateways[0].Endpoints = make([][]string, 9) },
		"endpoints":         func(o *records.Offer) { o.Gateways[0].Endpoints[0] = many },
		"loopback endpoint": func(o *records.Offer) { o.Gateways[0].Endpoints[0][0] = "127.0.0.1:1" },
		"URL":               func(o *records.Offer) { o.Gateways[0].WebSocket[0] = "https://192.0.2.1:443/" },
		"loopback URL":      func(o *records.Offer) { o.Gateways[0].WebSocket[0] = "wss://127.0.0.1:443/" },
		"seal":              func(o *records.Offer) { o.Seal = make([]byte, 5000) },
		"ciphertext":        func(o *records.Offer) { o.Preshared.Ciphertext = make([]byte, 5000) },
	} {
		o := offer()
		change(&o)
		if _, err := records.Encode(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzOffer decodes any text that another cluster may send as its offer.
func FuzzOffer(f *testing.F) {
	text, err := records.Encode(offer())
	require.NoError(f, err)
	f.Add(text)
	f.Add("version: 1\ncluster: {id: x, name: a}\ngateways: [{endpoints: [[a:1]]}]")
	f.Fuzz(func(t *testing.T, text string) { roundTrip[records.Offer](t, text) })
}
