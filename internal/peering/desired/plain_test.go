package desired

import (
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
)

// TestPeerDecidesForNoEncryption: a peer cannot decide that tunnels have no encryption, unless the user of this cluster
// wants it now or has wanted it before.
func TestPeerDecidesForNoEncryption(t *testing.T) {
	plain := records.GatewaySettings{Tunnel: new(records.PlainTunnel), Unencrypted: new(true)}
	public := records.GatewaySettings{Tunnel: new(records.PlainTunnel), Unencrypted: new(true), AllowPublic: new(true)}
	encrypted := records.GatewaySettings{Tunnel: new(records.WireGuardTunnel)}
	for name, c := range map[string]struct {
		wanted   records.GatewaySettings
		recorded *records.Peering
		decided  records.GatewaySettings
		accepted bool
	}{
		"encrypted":                  {decided: encrypted, accepted: true},
		"by default":                 {accepted: true},
		"not asked":                  {decided: plain},
		"wanted":                     {wanted: plain, decided: plain, accepted: true},
		"recorded":                   {recorded: &records.Peering{Settings: plain}, decided: plain, accepted: true},
		"recorded, no longer wanted": {wanted: encrypted, recorded: &records.Peering{Settings: plain}, decided: plain},
		"no longer confirmed":        {wanted: records.GatewaySettings{Unencrypted: new(false)}, recorded: &records.Peering{Settings: plain}, decided: plain},
		"recorded with encryption":   {recorded: &records.Peering{}, decided: plain},
		"public, not asked":          {wanted: plain, decided: public},
		"public, not recorded":       {recorded: &records.Peering{Settings: plain}, decided: public},
		"public, wanted":             {wanted: public, decided: public, accepted: true},
		"public, recorded":           {recorded: &records.Peering{Settings: public}, decided: public, accepted: true},
	} {
		h := Half{Wanted: Wanted{Settings: c.wanted}, Recorded: c.recorded}
		if err := h.checkPlain(c.decided); (err == nil) != c.accepted {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPeerHasRecordedNoEncryption: a server without a record takes the settings of the client's record, but not that
// the tunnels have no encryption.
func TestPeerHasRecordedNoEncryption(t *testing.T) {
	plain := records.GatewaySettings{Tunnel: new(records.PlainTunnel), Unencrypted: new(true)}
	for _, wanted := range []records.GatewaySettings{{}, plain} {
		client := Half{Wanted: Wanted{Settings: wanted, Gateways: 1}, Recorded: recordOf(records.Client, 1400, 1, 1)}
		client.Recorded.Settings = plain
		server := Half{Wanted: Wanted{Settings: wanted, Gateways: 1}}
		for _, h := range []*Half{&client, &server} {
			h.Fabric.ExternalCIDRs = parsed.Prefixes("10.70.0.0/16")
		}
		errs := meet(&client, &server)
		if server.Role != records.Server || (errs[1] == nil) != (wanted.Tunnel != nil) {
			t.Errorf("wanted %v: role %s, %v", wanted.Tunnel, server.Role, errs)
		}
	}
}

// TestPublicEndpoints: packets without encryption go to public addresses, or names, only if the user allows it.
func TestPublicEndpoints(t *testing.T) {
	for endpoint, private := range map[string]bool{
		"10.1.2.3:51840": true, "192.168.3.4:1": true, "172.31.1.11:30000": true, "100.64.1.2:51840": true, "[fd00::1]:51840": true,
		"8.8.8.8:51840": false, "gw.example.com:51840": false, "[2a00:1450::1]:51840": false, "172.32.0.1:51840": false,
	} {
		h := Half{Role: records.Client, Keys: []Key{{}}, Peer: records.Offer{Gateways: []records.OfferedGateway{{Endpoints: [][]string{{"10.0.0.1:1", endpoint}}}}}}
		h.Wanted.Gateways = 1
		for _, allowed := range []bool{false, true} {
			h.Settings = records.GatewaySettings{Tunnel: new(records.PlainTunnel), Unencrypted: new(true), AllowPublic: &allowed}
			if err := h.CheckPublic(); (err == nil) != (private || allowed) || err != nil && !strings.Contains(err.Error(), "is public") {
				t.Errorf("%s, allowed %t: %v", endpoint, allowed, err)
			}
		}
		h.Settings = records.GatewaySettings{}
		if err := h.CheckPublic(); err != nil {
			t.Errorf("%s, encrypted: %v", endpoint, err)
		}
	}
}

// TestPublicSources: a server without encryption needs the networks of the peer's nodes, to which it sends: public ones
// only if the user allows it.
func TestPublicSources(t *testing.T) {
	for name, c := range map[string]struct {
		networks []string
		allowed  bool
		want     string
	}{
		"private":         {networks: []string{"10.1.2.0/24", "172.31.1.0/24"}},
		"one is public":   {networks: []string{"10.1.2.0/24", "8.8.8.0/24"}, want: "8.8.8.0/24"},
		"all":             {networks: []string{"0.0.0.0/0"}, want: "0.0.0.0/0"},
		"public, allowed": {networks: []string{"8.8.8.0/24"}, allowed: true},
		"none":            {allowed: true, want: "no node networks"},
	} {
		h := Half{Role: records.Server, Settings: records.GatewaySettings{Tunnel: new(records.PlainTunnel), Unencrypted: new(true), AllowPublic: &c.allowed}}
		h.Peer.Ranges.NodeNetworks = parsed.Prefixes(c.networks...)
		if err := h.CheckPublic(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		h.Settings = records.GatewaySettings{}
		if err := h.CheckPublic(); err != nil {
			t.Errorf("%s, encrypted: %v", name, err)
		}
	}
}
