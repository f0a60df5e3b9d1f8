package serving_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

var fabric = records.Fabric{
	PodCIDRs: []netip.Prefix{prefix("10.244.0.0/16")}, ServiceCIDRs: []netip.Prefix{prefix("10.96.0.0/12")},
	InternalCIDRs: []netip.Prefix{prefix("10.80.0.0/16")}, ExternalCIDRs: []netip.Prefix{prefix("10.70.0.0/16")},
}

// peering returns a peering with a number and the peer's pods in a range. The external CIDR follows from the number.
func peering(name string, number int, pods string) records.Peering {
	external := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 200, byte(number), 0}), 24)
	return records.Peering{
		Name: name, Number: number, Gateways: []records.LocalGateway{{}},
		Peer: records.Peer{PodCIDRs: []records.Mapping{{Seen: prefix(pods)}}, ExternalCIDRs: []records.Mapping{{Seen: external}}},
	}
}

// numbered returns a peering with another number.
func numbered(p records.Peering, number int) records.Peering {
	p.Number = number
	return p
}

func byName(all ...records.Peering) map[string]records.Peering {
	named := map[string]records.Peering{}
	for _, p := range all {
		named[p.Name] = p
	}
	return named
}

func recorded(all ...records.Peering) map[string]serving.Record {
	named := map[string]serving.Record{}
	for name, p := range byName(all...) {
		named[name] = serving.Record{Peering: p}
	}
	return named
}

// TestPrecedence checks which of two peerings has what both want: the one that has it already. Without that, the order
// is that of the names.
func TestPrecedence(t *testing.T) {
	const one, other, third = "10.11.0.0/16", "10.12.0.0/16", "10.13.0.0/16"
	unreadable := errors.New("damaged")
	b, c := peering("b", 1, one), peering("c", 2, other)
	for what, test := range map[string]struct {
		before map[string]records.Peering
		now    map[string]serving.Record
		want   map[string]string // range of pods by peering
		faulty []string
	}{
		"both new":             {nil, recorded(peering("b", 1, one), peering("c", 2, one)), map[string]string{"b": one}, []string{"c"}},
		"the second has it":    {byName(c), recorded(peering("b", 1, other), c), map[string]string{"c": other}, []string{"b"}},
		"taken by a change":    {byName(b, c), recorded(peering("b", 1, other), c), map[string]string{"b": one, "c": other}, []string{"b"}},
		"by one that is wider": {byName(b, c), recorded(peering("b", 1, "10.8.0.0/13"), c), map[string]string{"b": one, "c": other}, []string{"b"}},
		"both exchange":        {byName(b, c), recorded(peering("b", 1, other), peering("c", 2, one)), map[string]string{"b": other, "c": one}, nil},
		"one follows another":  {byName(b, c), recorded(peering("b", 1, other), peering("c", 2, third)), map[string]string{"b": other, "c": third}, nil},
		"a number":             {byName(c), recorded(numbered(b, 2), c), map[string]string{"c": other}, []string{"b"}},
		"another number":       {byName(b, c), recorded(b, numbered(c, 3)), map[string]string{"b": one, "c": other}, nil},
		"exchanged numbers":    {byName(b, c), recorded(numbered(b, 2), numbered(c, 1)), map[string]string{"b": one, "c": other}, nil},
		"the last number":      {nil, recorded(numbered(b, 4095)), map[string]string{"b": one}, nil},
		"a number too many":    {nil, recorded(numbered(b, 4096)), map[string]string{}, []string{"b"}},
		"a number from a kernel, in use": {
			byName(b, numbered(c, 1)), map[string]serving.Record{"b": {Peering: b}, "c": {Err: unreadable}}, map[string]string{"b": one}, []string{"c"},
		},
		"a number from a kernel, of a node": {byName(numbered(c, 0)), map[string]serving.Record{"c": {Err: unreadable}}, map[string]string{}, []string{"c"}},
		"from one that is damaged": {
			byName(b, c), map[string]serving.Record{"b": {Peering: peering("b", 1, other)}, "c": {Err: unreadable}},
			map[string]string{"b": one, "c": other}, []string{"b", "c"},
		},
		"from one with ranges of the cluster": {
			byName(b, c), recorded(peering("b", 1, other), peering("c", 2, "10.244.3.0/24")), map[string]string{"b": one, "c": other}, []string{"b", "c"},
		},
		"from one without a record": {byName(b, c), recorded(peering("b", 1, other)), map[string]string{"b": other}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			choice := serving.Choose(serving.Cluster{Fabric: &fabric, Before: test.before, Records: test.now})
			got := map[string]string{}
			for _, p := range choice.Peerings {
				got[p.Name] = p.Peer.PodCIDRs[0].Seen.String()
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("served %v, want %v", got, test.want)
			}
			var faulty []string
			for _, f := range choice.Faults {
				faulty = append(faulty, f.Peering)
			}
			if slices.Sort(faulty); !slices.Equal(faulty, test.faulty) {
				t.Errorf("faults %v, want those of %v", choice.Faults, test.faulty)
			}
		})
	}
}

// TestReservedNumbers checks that a record is served only with the number that is reserved for its peering. If none is
// known to be reserved, as when the reservations cannot be read, its own counts, unless it is reserved for another
// peering.
func TestReservedNumbers(t *testing.T) {
	const one, other = "10.11.0.0/16", "10.12.0.0/16"
	b, c := peering("b", 1, one), peering("c", 2, other)
	block := func(number int) netip.Prefix { return records.GatewayAddresses(fabric.InternalCIDR(), number) }
	for what, test := range map[string]struct {
		reserved map[string]netip.Prefix
		before   map[string]records.Peering
		want     string // served peerings with their numbers
		faulty   int
	}{
		"reserved":             {map[string]netip.Prefix{"b": block(1), "c": block(2)}, nil, "b1 c2", 0},
		"not known":            {nil, nil, "b1 c2", 0},
		"of one":               {map[string]netip.Prefix{"c": block(2)}, nil, "b1 c2", 0},
		"another":              {map[string]netip.Prefix{"b": block(3), "c": block(2)}, nil, "c2", 1},
		"another, kept":        {map[string]netip.Prefix{"b": block(3), "c": block(2)}, byName(numbered(b, 3)), "b3 c2", 1},
		"of a third":           {map[string]netip.Prefix{"d": block(1)}, nil, "c2", 1},
		"exchanged":            {map[string]netip.Prefix{"b": block(2), "c": block(1)}, nil, "", 2},
		"exchanged while kept": {map[string]netip.Prefix{"b": block(2), "c": block(1)}, byName(b, c), "b1 c2", 2},
		"in the nodes' half":   {map[string]netip.Prefix{"b": prefix("10.80.0.8/29"), "c": block(2)}, nil, "c2", 1},
	} {
		t.Run(what, func(t *testing.T) {
			choice := serving.Choose(serving.Cluster{Fabric: &fabric, Before: test.before, Records: recorded(b, c), Gateways: test.reserved})
			var got []string
			for _, p := range choice.Peerings {
				got = append(got, fmt.Sprint(p.Name, p.Number))
			}
			if strings.Join(got, " ") != test.want || len(choice.Faults) != test.faulty {
				t.Errorf("served %v, faults %v, want %s and %d", got, choice.Faults, test.want, test.faulty)
			}
		})
	}
}

// TestRandomPeerings checks for random records that no two peerings share an address, that no address of the cluster is
// a peer's, and that each range of a peer is served or held back.
func TestRandomPeerings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(60 + r.IntN(30)), byte(r.IntN(4) * 64), 0}), 12+r.IntN(9)).Masked()
	}
	before := map[string]records.Peering{}
	for range 2000 {
		c := serving.Cluster{Fabric: &fabric, Before: before, Records: map[string]serving.Record{}, Pods: []netip.Prefix{prefix("10.62.0.0/24")}}
		c.Hosts.Add("node address", prefix("10.61.7.7/32"))
		own := slices.Concat(fabric.PodCIDRs, fabric.ServiceCIDRs, c.Pods, fabric.InternalCIDRs, fabric.ExternalCIDRs, []netip.Prefix{c.Hosts[0].Prefix})
		for i := range 4 {
			p := peering(string(rune('a'+i)), 1+r.IntN(5), random().String())
			c.Records[p.Name] = serving.Record{Peering: p}
			if r.IntN(4) == 0 {
				c.Records[p.Name] = serving.Record{Err: errors.New("damaged")}
			}
		}
		choice := serving.Choose(c)
		var served []netip.Prefix
		numbers := map[int]bool{}
		for _, p := range choice.Peerings {
			for _, seen := range p.Seen() {
				if cidr.Overlaps(seen, served) || cidr.Overlaps(seen, own) {
					t.Fatalf("%s of peering %s overlaps %v or %v", seen, p.Name, served, own)
				}
			}
			if served = append(served, p.Seen()...); numbers[p.Number] {
				t.Fatalf("two peerings with number %d", p.Number)
			}
			numbers[p.Number] = true
		}
		for name, rec := range c.Records {
			for _, seen := range rec.Peering.Seen() {
				if rec.Err == nil && !cidr.Overlaps(seen, own) && !cidr.Within(seen, slices.Concat(served, choice.HeldBack)) &&
					!slices.ContainsFunc(choice.Peerings, func(p records.Peering) bool { return p.Name == name }) {
					t.Fatalf("%s of peering %s is neither served nor held back: %v", seen, name, choice)
				}
			}
		}
		for _, held := range choice.HeldBack {
			if cidr.Overlaps(held, own) {
				t.Fatalf("%s is held back, and overlaps %v", held, own)
			}
		}
		before = byName(choice.Peerings...)
	}
}

// TestManyNodeNetworks checks that an unclaimed range is held back without the networks of nodes in it, and in no more
// parts than a node's kernel should have, the widest of them.
func TestManyNodeNetworks(t *testing.T) {
	for networks, want := range map[int]int{0: 1, 3: 16, 5_000: 1000} {
		f := fabric
		for i := range networks {
			f.NodeNetworks = append(f.NodeNetworks, netip.PrefixFrom(cidr.Address(uint32(100)<<24|64<<16+uint32(i)*256), 25))
		}
		c := serving.Choose(serving.Cluster{Fabric: &f, Unclaimed: []netip.Prefix{prefix("100.64.0.0/10")}})
		if len(c.HeldBack) != want || networks > 0 && !slices.Contains(c.HeldBack, prefix("100.96.0.0/11")) {
			t.Errorf("%d networks: %d parts, want %d, with the widest: %v", networks, len(c.HeldBack), want, c.HeldBack[:min(len(c.HeldBack), 30)])
		}
		for _, p := range c.HeldBack {
			if cidr.Overlaps(p, f.NodeNetworks) {
				t.Fatalf("%d networks: %s is a node's", networks, p)
			}
		}
	}
}
