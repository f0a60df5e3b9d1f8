// Package serving decides which peerings a node serves, and which ranges of peers it only guards. It is pure: the
// records as read and the peerings as served before in, the choice out.
//
// A peering is served according to its record, or kept as it was served before: its record is not readable, has
// addresses of the cluster itself, or conflicts with another peering. If it was not served before, its ranges are
// guarded.
package serving

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

// Record is the record of a peering.
type Record struct {
	Peering records.Peering
	Err     error // why the record is not readable; nil: it is
}

// Cluster is what a node has read of its cluster.
type Cluster struct {
	Fabric *records.Fabric // nil: none, so no peering is served
	// Hosts are addresses of this node and of API servers, Pods those of this node's pods. A route to a peer, or a
	// guard, for one of them would divert it from the cluster: no peer gets them, whatever is in a record.
	Hosts Ranges
	Pods  []netip.Prefix
	// By name of the peering: records, peerings as they were served before, and ranges reserved for the peer.
	Records  map[string]Record
	Before   map[string]records.Peering
	Reserved map[string][]netip.Prefix
	// Gateways are the addresses reserved for the gateways of each peering: its number. None is known if the
	// reservations have not been read; then a record is served by its own number.
	Gateways map[string]netip.Prefix
	// Unclaimed are ranges of a peer, of which it is not known which one: an earlier process routed or guarded them.
	Unclaimed []netip.Prefix
}

// Choice are the peerings that a node serves.
type Choice struct {
	Peerings []records.Peering // served or kept, sorted by name
	HeldBack []netip.Prefix    // further ranges of peers, to guard only; sorted
	Guarded  []string          // peerings all of whose ranges are held back, sorted
	NoPods   Ranges            // addresses that no pod has: of the cluster and of peers
	Faults   []Fault
}

// Fault is a record that is rejected.
type Fault struct {
	Object  string // name of the ConfigMap
	Peering string // "": the fault affects none, or all
	Err     error
}

// CheckFabric rejects a fabric with which the overlay would take foreign addresses.
func (c Cluster) CheckFabric(f records.Fabric) error {
	if err := c.own().withNetworks(f).Conflict(f.InternalCIDR()); err != nil {
		return fmt.Errorf("internal CIDR %w", err)
	}
	return nil
}

// own returns the addresses that no peer gets, whatever the fabric.
func (c Cluster) own() Ranges {
	own := slices.Clone(c.Hosts)
	own.Add("pods of this node", c.Pods...)
	return own
}

// Choose returns the peerings to serve.
func Choose(c Cluster) Choice {
	own, choice := taken{Ranges: c.own()}, Choice{NoPods: c.Hosts}
	if f := c.Fabric; f != nil {
		own.internal, own.Ranges, choice.NoPods = f.InternalCIDR(), own.withNetworks(*f), c.Hosts.withoutPods(*f)
		own.Add("internal CIDR", f.InternalCIDRs...)
		own.Add("external CIDR", f.ExternalCIDRs...)
	}
	all, guard := taken{slices.Clone(own.Ranges), map[int]string{}, own.internal}, map[string][]netip.Prefix{}
	maps.Copy(guard, c.Reserved)
	for _, candidate := range c.candidates(own) {
		p, err := all.first(candidate)
		if err != nil {
			err = fmt.Errorf("peering %q: %w", candidate.name, err)
			choice.Faults = append(choice.Faults, Fault{records.PeeringName(candidate.name), candidate.name, err})
		}
		if p == nil {
			guard[candidate.name] = slices.Concat(guard[candidate.name], candidate.seen)
			continue
		}
		choice.Peerings = append(choice.Peerings, *p)
		choice.NoPods.addPeer(*p)
	}
	slices.SortStableFunc(choice.Peerings, func(a, b records.Peering) int { return byName(a, b.Name) })
	for _, name := range slices.Sorted(maps.Keys(guard)) {
		choice.holdBack(name, guard[name], own.Ranges, all.Ranges)
	}
	for _, p := range c.Unclaimed { // without what the cluster uses, and what served peerings route
		choice.HeldBack = append(choice.HeldBack, widest(cidr.Without(p, all.prefixes()))...)
	}
	slices.SortFunc(choice.HeldBack, netip.Prefix.Compare)
	choice.HeldBack = slices.Compact(choice.HeldBack)
	return choice
}

// mostParts bounds the parts of an unclaimed range that are held back: each is a route, and a cluster can have
// thousands of node networks.
const mostParts = 1000

// widest returns the widest parts of a range, up to mostParts.
func widest(parts []netip.Prefix) []netip.Prefix {
	slices.SortStableFunc(parts, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	return parts[:min(len(parts), mostParts)]
}

// candidate is a peering that may be served.
type candidate struct {
	name    string
	choices []records.Peering // in order of preference: by its record, and as before
	err     error             // why its record is not among them
	seen    []netip.Prefix    // ranges in its record
	rank    int               // valid and as before, kept for an error, served with other ranges or another number, new
}

// candidates returns all peerings in order of precedence.
func (c Cluster) candidates(own taken) (all []candidate) {
	for name, r := range c.Records {
		one := candidate{name: name, err: r.Err}
		before, known := c.Before[name]
		switch {
		case r.Err == nil:
			one.seen = r.Peering.Seen()
		case known:
			one.seen = before.Seen()
		}
		if r.Err == nil && c.Fabric != nil {
			one.err = cmp.Or(own.conflict(r.Peering), c.checkNumber(r.Peering))
		}
		switch {
		case !known:
			one.rank = 3
		case one.err != nil:
			one.rank = 1
		case !sameClaims(r.Peering, before):
			one.rank = 2
		}
		if one.err == nil && c.Fabric != nil {
			one.choices = append(one.choices, r.Peering)
		}
		if known && c.Fabric != nil {
			one.choices = append(one.choices, before)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Or(a.rank-b.rank, strings.Compare(a.name, b.name)) })
	return all
}

// checkNumber rejects a peering whose number is not the one that is reserved for it, or is reserved for another one.
func (c Cluster) checkNumber(p records.Peering) error {
	own := records.GatewayAddresses(c.Fabric.InternalCIDR(), p.Number)
	for name, reserved := range c.Gateways {
		if (name == p.Name) != (reserved == own) {
			return fmt.Errorf("number %d is not the one that ConfigMap %s reserves", p.Number, records.IPAMName)
		}
	}
	return nil
}

// sameClaims reports whether two records of a peering have the same values that no other peering may have.
func sameClaims(p, before records.Peering) bool {
	return p.Number == before.Number && slices.Equal(cidr.Outermost(p.Seen()), cidr.Outermost(before.Seen()))
}

// taken are ranges and numbers that are in use. Two peerings with one number would make a state that no kernel can
// hold, and so block all of them.
type taken struct {
	Ranges
	numbers  map[int]string // peerings by number
	internal netip.Prefix   // CIDR of the gateways
}

// first adds the first choice of a candidate without a conflict; nil if there is none. err is the reason if that is not
// its record.
func (t *taken) first(c candidate) (*records.Peering, error) {
	err := c.err
	for _, p := range c.choices {
		conflict := t.conflict(p)
		if conflict == nil {
			t.numbers[p.Number] = p.Name
			t.addPeer(p)
			return &p, err
		}
		err = cmp.Or(err, conflict)
	}
	return nil, err
}

// conflict returns an error if something else has an address or the number of a peering.
func (t *taken) conflict(p records.Peering) error {
	for _, seen := range p.Seen() {
		if err := t.Conflict(seen); err != nil {
			return err
		}
	}
	if most := records.MaxPeerings(t.internal); p.Number < 1 || p.Number > most {
		return fmt.Errorf("number %d: internal CIDR %s has addresses for %d peerings", p.Number, t.internal, most)
	}
	if other, is := t.numbers[p.Number]; is {
		return fmt.Errorf("number %d is that of peering %q", p.Number, other)
	}
	return nil
}

// holdBack adds the ranges of a peering that are only guarded: those without a path and without addresses of the
// cluster.
func (c *Choice) holdBack(name string, ranges []netip.Prefix, own, all Ranges) {
	var conflicts []error
	known := len(c.HeldBack)
	for _, p := range ranges {
		if all.routes(p) {
			continue
		}
		if err := own.Conflict(p); err != nil {
			conflicts = append(conflicts, err)
		} else {
			c.HeldBack = append(c.HeldBack, p)
		}
	}
	if len(conflicts) > 0 {
		c.Faults = append(c.Faults, Fault{records.IPAMName, name, fmt.Errorf("hold back peering %q: %w", name, errors.Join(conflicts...))})
	}
	if _, served := slices.BinarySearchFunc(c.Peerings, name, byName); !served && len(c.HeldBack) > known {
		c.Guarded = append(c.Guarded, name)
	}
}

func byName(p records.Peering, name string) int { return strings.Compare(p.Name, name) }
