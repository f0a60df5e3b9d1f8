package peering

import (
	"slices"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// Hop is a part of the way between the pods of two clusters.
type Hop struct {
	// Name says which: the links of a cluster's nodes, the way from them to their gateway, or that between gateways.
	Name string `json:"name"`
	Size int    `json:"size"` // bytes, of the largest IP packet that it carries in one piece; 0: nobody answers
	Fits int    `json:"fits"` // bytes, of the largest packet between pods for which that is enough; 0: not known
	Link bool   `json:"link"` // it is what the links of nodes say, not what was measured
}

// hopSizes are what gateways report of the hops next to them, in bytes; 0: not known.
type hopSizes struct {
	gateways int      // between the gateways
	overlay  int      // from nodes to the gateway, the least of all
	unasked  []string // hops that are not measured yet
	silent   []string // hops that could not be measured
}

// sizesIn returns what a report says of the hops; nil: there is none yet.
func sizesIn(s *records.Status, nodes []string) hopSizes {
	var h hopSizes
	note := func(what string, p records.PathSize) {
		switch {
		case !p.Asked:
			h.unasked = append(h.unasked, what)
		case p.MTU == 0:
			h.silent = append(h.silent, what)
		}
	}
	if s == nil {
		return hopSizes{unasked: []string{"all"}}
	}
	for _, t := range s.AllTunnels() {
		note("between the gateways", t.Path)
		h.gateways = lesser(h.gateways, t.Path.MTU)
	}
	for _, name := range nodes {
		n, _ := health.Node(s, name)
		note("from node "+name+" to the gateway", n.Path)
		h.overlay = lesser(h.overlay, n.Path.MTU)
	}
	return h
}

// lesser is the lesser of two sizes, of which 0 is none.
func lesser(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// narrowestOf are the hops next to any of several gateways.
func narrowestOf(all []hopSizes) (sum hopSizes) {
	for _, h := range all {
		sum.gateways, sum.overlay = lesser(sum.gateways, h.gateways), lesser(sum.overlay, h.overlay)
		sum.unasked, sum.silent = append(sum.unasked, h.unasked...), append(sum.silent, h.silent...)
	}
	sum.unasked, sum.silent = once(sum.unasked), once(sum.silent)
	return sum
}

// once has each text of a list once.
func once(all []string) (some []string) {
	for _, text := range all {
		if !slices.Contains(some, text) {
			some = append(some, text)
		}
	}
	return some
}

// whole reports whether every hop is measured.
func (h hopSizes) whole() bool { return len(h.unasked)+len(h.silent) == 0 }

// hops are those of a connection, as far as they are known.
func hops(a, b *end) []Hop {
	between := lesser(a.sizes.gateways, b.sizes.gateways)
	var all []Hop
	for _, e := range []*end{a, b} {
		all = append(all, Hop{Name: "on the links of " + e.name, Size: e.fabric.MTU, Fits: fits(e.fabric.MTU, health.TunnelOverhead), Link: true})
	}
	for _, e := range []*end{a, b} {
		all = append(all, Hop{Name: "from nodes of " + e.name + " to their gateway", Size: e.sizes.overlay, Fits: fits(e.sizes.overlay, health.OverlayOverhead)})
	}
	return append(all, Hop{Name: "between the gateways", Size: between, Fits: fits(between, health.TunnelOverhead)})
}

func fits(size, overhead int) int {
	if size == 0 {
		return 0
	}
	return size - overhead
}

// narrowest is the size in bytes of the largest packet that fits every hop that is known; 0 if none is.
func narrowest(all []Hop) int {
	least := 0
	for _, h := range all {
		least = lesser(least, max(h.Fits, 0))
	}
	return least
}

// Narrow returns the measured hops that carry less than the links of nodes let expect.
func Narrow(all []Hop) []Hop {
	links := narrowest(slices.DeleteFunc(slices.Clone(all), func(h Hop) bool { return !h.Link }))
	return slices.DeleteFunc(slices.Clone(all), func(h Hop) bool { return h.Link || h.Fits == 0 || h.Fits >= links })
}

// fittingMTU is the MTU of a peering by what is known of the hops: 0 before the nodes have reported. One that
// stands, in this end's document (nil: there is none) or the other's, does not rise before all is measured: what is not
// known may be what made it fall.
func (e *end) fittingMTU(have *records.Peering) int {
	peer := e.peer
	if e.fabric.MTU == 0 || peer.fabric.MTU == 0 {
		return 0
	}
	mtu := narrowest(hops(e, peer))
	if e.sizes.whole() && peer.sizes.whole() {
		return mtu
	}
	for _, stands := range []*records.Peering{have, peer.have} {
		if stands != nil {
			mtu = min(mtu, stands.MTU)
		}
	}
	return mtu
}
