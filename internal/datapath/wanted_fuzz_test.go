//go:build linux

package datapath_test

import (
	"encoding/binary"
	"net/netip"
	"regexp"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/datapath"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// Words that may and do come from a record's text: numbers, hardware addresses, and the remains of addresses and
// ranges.
var (
	number = regexp.MustCompile(`0x[0-9a-f]+|([0-9a-f]{2}:){5}[0-9a-f]{2}|[0-9]+`)
	word   = regexp.MustCompile(`\S*[^\s.,:;/-]\S*`)
)

// wordsOf returns the words of a plan.
func wordsOf(s netops.State) (words []string, plan string) {
	plan = netops.Diff(netops.State{}, s).String()
	return word.FindAllString(number.ReplaceAllString(plan, ""), -1), plan
}

// wantedBy returns the desired kernel states of a node and a gateway for these records.
func wantedBy(p records.Peering, g records.Gateway, n records.Node) [2]netops.State {
	fabric := sample.Fabric()
	node := datapath.Node{
		Fabric: &fabric, Peerings: []records.Peering{p}, Gateways: map[records.GatewayID]records.Gateway{sample.FirstGateway(p.Name): g},
		Internal: netip.MustParseAddr("10.80.0.7"),
	}
	gateway := datapath.Gateway{Fabric: fabric, Peering: p, Number: 1, Nodes: []records.Node{n}, Pod: g.PodIP}
	return [2]netops.State{node.State(), gateway.State()}
}

// written are records from an arbitrary writer.
type written struct {
	peering records.Peering
	gateway records.Gateway
	node    records.Node
}

// writtenWith puts a text and addresses into every possible field. If the text is an address, it replaces the first
// one.
func writtenWith(text string, one, other uint32, bits uint8) written {
	address, second := fromNumber(one), fromNumber(other)
	if a, err := netip.ParseAddr(text); err == nil {
		address = a
	}
	first, seen := netip.PrefixFrom(address, int(bits%33)).Masked(), netip.PrefixFrom(second, int(bits%33)).Masked()
	w := written{sample.Peering(), sample.Gateway(), records.Node{Version: records.SchemaVersion, Name: text, Number: int(other & (1<<23 - 1)), MTU: 1500}}
	p, g, n := &w.peering, &w.gateway, &w.node
	p.Peer.ClusterID, p.Peer.PodCIDRs = text, []records.Mapping{{Real: first, Seen: seen}}
	p.Number = int(other & (1<<20 - 1))
	own := &p.Gateways[0]
	own.Tunnels[0].Endpoints = append(own.Tunnels[0].Endpoints, text, address.String()+":7")
	p.Exposed = []records.Exposed{{Host: address, Address: netip.MustParseAddr("10.70.128.1")}}
	g.Pod, g.Node, g.PodIP, g.Endpoint = text, text, second, netip.AddrPortFrom(address, uint16(other))
	n.PodCIDRs, n.Pods = []netip.Prefix{first}, []netip.Addr{address}
	n.OverlaySources = map[records.GatewayID]netip.Addr{sample.FirstGateway(p.Name): address}
	n.Kernel.Release = text
	return w
}

func fromNumber(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

// accepted reports whether all records are valid.
func (w written) accepted() bool {
	for _, d := range []records.Document{w.peering, w.gateway, w.node} {
		if _, err := records.Encode(d); err != nil {
			return false
		}
	}
	return true
}

// FuzzWanted has helpers apply records from an arbitrary writer. The accepted values become nftables rules that the
// kernel can load, and no word of the records is in them or in the rest of the plan.
func FuzzWanted(f *testing.F) {
	const pod, host, internal = 10<<24 | 244<<16 | 0x105, 198<<24 | 51<<16 | 100<<8 | 7, 10<<24 | 80<<16 | 8
	known := map[string]bool{}
	for _, change := range []func(*written){
		func(*written) {},
		func(w *written) { w.peering.Role = records.Server },
		func(w *written) { w.peering.Exposed, w.peering.Settings.ClampMSS = nil, new(false) },
	} {
		for _, a := range []struct {
			one, other uint32
			bits       uint8
			// A node's path, a host, a gateway among the peer's pods.
		}{{pod, internal, 24}, {host, internal, 24}, {pod, host, 0}} {
			w := writtenWith("192.0.2.7:51840", a.one, a.other, a.bits)
			change(&w)
			wanted := wantedBy(w.peering, w.gateway, w.node)
			if !w.accepted() {
				f.Fatal("refused")
			}
			for _, state := range wanted {
				words, _ := wordsOf(state)
				for _, w := range words {
					known[w] = true
				}
			}
		}
	}
	for _, text := range []string{"x; flush ruleset:1", "\" accept\n:1", "} table ip evil {:1", "fe80::1%evil accept", "::ffff:10.1.2.3"} {
		f.Add(text, uint32(pod), uint32(host), uint8(24), true)
		f.Add(text, uint32(host), uint32(pod), uint8(0), false)
	}
	f.Fuzz(func(t *testing.T, text string, one, other uint32, bits uint8, server bool) {
		w := writtenWith(text, one, other, bits)
		if server {
			w.peering.Role = records.Server
		}
		if !w.accepted() {
			return
		}
		for _, state := range wantedBy(w.peering, w.gateway, w.node) {
			if err := nft.Diff(nft.Table{}, state.Firewall).Err(); err != nil {
				t.Errorf("the kernel cannot hold %v", err)
			}
			words, plan := wordsOf(state)
			if i := slices.IndexFunc(words, func(w string) bool { return !known[w] }); i >= 0 {
				t.Errorf("%q is no word of liqonet's plans:\n%s", words[i], plan)
			}
		}
	})
}
