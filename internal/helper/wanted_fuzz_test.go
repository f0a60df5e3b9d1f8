//go:build linux

package helper

import (
	"net/netip"
	"regexp"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// word is what could come from a record's text; numbers and addresses are none.
var word = regexp.MustCompile(`[^0-9./,\s]*[^0-9./,\s:][^0-9./,\s]*`)

// wantedBy is what a node and a gateway are to have in their kernels by these records.
func wantedBy(p records.Peering, g records.Gateway, n records.Node) (all [2]netops.State, err error) {
	fabric := testFabric()
	node := nodeView{fabric: &fabric, peerings: []records.Peering{p}, gateways: map[string]records.Gateway{p.Name: g}}
	gateway := gatewayView{fabric: fabric, peering: p, nodes: []records.Node{n}, pod: g.PodIP}
	if all[0], err = node.state(netip.MustParseAddr("10.80.0.7")); err != nil {
		return all, err
	}
	all[1], err = gateway.state()
	return all, err
}

// FuzzWanted has helpers read records that anybody could have written. What they accept becomes rules of nftables
// which the kernel can hold, and neither in them nor in the rest of the plan is a word of the records'.
func FuzzWanted(f *testing.F) {
	p, g := testPeering(), testGateway()
	p.Exposed = []records.Exposed{{Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1")}}
	g.Endpoint = netip.MustParseAddrPort("10.11.3.4:51840")
	n := records.Node{
		Version: records.SchemaVersion, Name: "n", Internal: netip.MustParseAddr("10.80.0.8"), MTU: 1500,
		PodCIDRs: prefixes("10.244.1.0/24"), Pods: addrs("10.244.9.3"),
		OverlaySources: map[string]netip.Addr{"b": netip.MustParseAddr("172.31.1.11")},
	}
	known := map[string]bool{}
	for _, change := range []func(*records.Peering){
		func(*records.Peering) {},
		func(p *records.Peering) { p.Role = records.Server },
		func(p *records.Peering) { p.Exposed, p.ClampMSS = nil, false },
	} {
		p := p
		change(&p)
		wanted, err := wantedBy(p, g, n)
		if err != nil {
			f.Fatal(err)
		}
		for _, state := range wanted {
			for _, w := range word.FindAllString(netops.Diff(netops.State{}, state).String(), -1) {
				known[w] = true
			}
		}
		f.Add(encoded(f, p), encoded(f, g), encoded(f, n))
	}
	hostile := p
	hostile.Peer.ClusterID, hostile.Tunnel.Endpoints = "x; flush ruleset", []string{"\" accept\n:1"}
	g.Pod, g.Node = "} table ip evil {", "\"; accept"
	g.Endpoint = netip.MustParseAddrPort("[fe80::1%evil accept]:7")
	f.Add(encoded(f, hostile), encoded(f, g), encoded(f, n))
	f.Fuzz(func(t *testing.T, peering, gateway, node string) {
		p, err1 := records.Decode[records.Peering](peering)
		g, err2 := records.Decode[records.Gateway](gateway)
		n, err3 := records.Decode[records.Node](node)
		if err1 != nil || err2 != nil || err3 != nil {
			return
		}
		wanted, err := wantedBy(p, g, n)
		if err != nil {
			return
		}
		for _, state := range wanted {
			if err := nft.Diff(nft.Table{}, state.Firewall).Err(); err != nil {
				t.Errorf("the kernel cannot hold %v", err)
			}
			plan := netops.Diff(netops.State{}, state).String()
			words := word.FindAllString(plan, -1)
			if i := slices.IndexFunc(words, func(w string) bool { return !known[w] }); i >= 0 {
				t.Errorf("%q is no word of ours:\n%s", words[i], plan)
			}
		}
	})
}

func encoded(f *testing.F, d records.Document) string {
	f.Helper()
	text, err := records.Encode(d)
	if err != nil {
		f.Fatal(err)
	}
	return text
}
