package desired

import (
	"slices"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// Hop is a part of the path between the pods of two clusters.
type Hop struct {
	// Name identifies the hop: the links of a cluster's nodes, the path from them to their gateway, or the path between
	// gateways.
	Name string `json:"name"`
	Node string `json:"node,omitempty"` // of this run's clusters: the first node with this size
	Size int    `json:"size"`           // bytes, of the largest unfragmented IP packet; 0: no reply
	Fits int    `json:"fits"`           // bytes, of the largest packet between pods that this allows; 0: not known
	Link bool   `json:"link"`           // from the MTU of the nodes' links, not measured
}

// Sizes are a gateway's measurements of its hops, in bytes; 0: not known.
type Sizes struct {
	Gateways   int      // between the gateways
	Overlay    int      // from nodes to the gateway, the smallest
	Node       string   // the first node of Overlay
	Unmeasured []string // hops that are not measured yet
	Failed     []string // hops that could not be measured
}

// SizesOf returns the hop sizes in a gateway's status; nil: no status yet.
func SizesOf(s *records.Status, nodes []string) Sizes {
	var h Sizes
	classify := func(what string, p records.PathSize) {
		switch {
		case !p.Asked:
			h.Unmeasured = append(h.Unmeasured, what)
		case p.MTU == 0:
			h.Failed = append(h.Failed, what)
		}
	}
	if s == nil {
		return Sizes{Unmeasured: []string{"all"}}
	}
	for _, t := range s.AllTunnels() {
		classify("between the gateways", t.Path)
		h.Gateways = minKnown(h.Gateways, t.Path.MTU)
	}
	for _, name := range nodes {
		n := health.Node(s, name)
		classify("from node "+name+" to the gateway", n.Path)
		h.takeOverlay(n.Path.MTU, name)
	}
	return h
}

// takeOverlay adds the path MTU from a node to a gateway.
func (h *Sizes) takeOverlay(size int, node string) {
	if least := minKnown(h.Overlay, size); least != h.Overlay {
		h.Overlay, h.Node = least, node
	}
}

// minKnown returns the smaller of two sizes, of which 0 means not known.
func minKnown(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// MergeSizes returns the smallest hop sizes of several gateways.
func MergeSizes(all []Sizes) (sum Sizes) {
	for _, h := range all {
		sum.Gateways = minKnown(sum.Gateways, h.Gateways)
		sum.takeOverlay(h.Overlay, h.Node)
		sum.Unmeasured, sum.Failed = append(sum.Unmeasured, h.Unmeasured...), append(sum.Failed, h.Failed...)
	}
	sum.Unmeasured, sum.Failed = unique(sum.Unmeasured), unique(sum.Failed)
	return sum
}

// unique sorts a list and removes duplicates.
func unique(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// hops returns the path MTUs for an offer.
func (h Sizes) hops(links int) records.Hops {
	return records.Hops{Links: links, Overlay: h.Overlay, Tunnel: h.Gateways, Complete: h.complete()}
}

// complete reports whether every hop is measured.
func (h Sizes) complete() bool { return len(h.Unmeasured)+len(h.Failed) == 0 }

// Hops returns the hops of a peering, as far as two offers have them.
func Hops(a, b records.Offer) []Hop {
	var all []Hop
	for _, o := range []records.Offer{a, b} {
		all = append(all, Hop{Name: "on the links of " + o.Cluster.Name, Size: o.Hops.Links, Fits: fits(o.Hops.Links, health.TunnelOverhead), Link: true})
	}
	for _, o := range []records.Offer{a, b} {
		all = append(all, Hop{Name: "from nodes of " + o.Cluster.Name + " to their gateway", Size: o.Hops.Overlay, Fits: fits(o.Hops.Overlay, health.OverlayOverhead)})
	}
	between := minKnown(a.Hops.Tunnel, b.Hops.Tunnel)
	return append(all, Hop{Name: "between the gateways", Size: between, Fits: fits(between, health.TunnelOverhead)})
}

func fits(size, overhead int) int {
	if size == 0 {
		return 0
	}
	return size - overhead
}

// Narrowest returns the size in bytes of the largest packet that fits every known hop; 0 if none is known.
func Narrowest(all []Hop) int {
	least := 0
	for _, h := range all {
		least = minKnown(least, max(h.Fits, 0))
	}
	return least
}

// Narrow returns the measured hops whose path MTU is smaller than the MTU of the nodes' links allows.
func Narrow(all []Hop) []Hop {
	links := Narrowest(slices.DeleteFunc(slices.Clone(all), func(h Hop) bool { return !h.Link }))
	return slices.DeleteFunc(slices.Clone(all), func(h Hop) bool { return h.Link || h.Fits == 0 || h.Fits >= links })
}

// FittingMTU returns the MTU of a peering for the known hops: 0 before the nodes have reported. The MTU of an existing
// record, this cluster's (have; nil: it does not exist) or the peer's, does not rise before all hops are measured, as
// an unmeasured hop may be the bottleneck.
func (h Half) FittingMTU(have *records.Peering) int {
	own, far := h.Offer(), h.Peer
	if own.Hops.Links == 0 || far.Hops.Links == 0 {
		return 0
	}
	mtu := Narrowest(Hops(own, far))
	if own.Hops.Complete && far.Hops.Complete {
		return mtu
	}
	if have != nil {
		mtu = min(mtu, have.MTU)
	}
	if far.Recorded != nil {
		mtu = min(mtu, far.Recorded.MTU)
	}
	return mtu
}
