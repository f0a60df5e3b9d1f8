// Package ipam decides which address ranges a cluster uses for what. A Registry holds reservations, refuses
// those that collide and finds free ranges and addresses. How an address is called in another cluster is not in
// scope: see package translate.
//
// The package is pure: no client, no clock, no randomness. The same operations in the same order give the same
// reservations, and the free space depends on what is held alone, not on the way there. Package store keeps a
// Registry in a cluster.
package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
)

// Owner names who holds a reservation: Cluster, a Peering or a User. It is its own text form, such as "peering/b".
type Owner string

// Cluster owns what belongs to this cluster itself, whatever its peerings.
const Cluster Owner = "cluster"

const (
	peeringPrefix = "peering/"
	userPrefix    = "user/"
)

// Peering is the owner of what is held for the peering of that name.
func Peering(name string) Owner { return Owner(peeringPrefix + name) }

// Peering returns the name of the peering, and false when the owner is none.
func (o Owner) Peering() (name string, ok bool) { return strings.CutPrefix(string(o), peeringPrefix) }

// User is the owner of what somebody holds under a name of their choice: a person, a CI job, another program.
func User(name string) Owner { return Owner(userPrefix + name) }

// User returns the name that the user chose, and false when the owner is none.
func (o Owner) User() (name string, ok bool) { return strings.CutPrefix(string(o), userPrefix) }

// Validate refuses what is no owner.
func (o Owner) Validate() error {
	if o == Cluster {
		return nil
	}
	name, ok := o.Peering()
	if !ok {
		name, ok = o.User()
	}
	if !ok || name == "" || strings.ContainsFunc(name, func(c rune) bool { return !nameCharacter(c) }) {
		return fmt.Errorf("owner %q: not %s, %sNAME or %sNAME, with a name of letters, digits, '-', '.' and '_'",
			string(o), Cluster, peeringPrefix, userPrefix)
	}
	return nil
}

// nameCharacter reports whether a name in an Owner may have the character: what names in Kubernetes consist of.
func nameCharacter(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-._", c)
}

// Purpose says what a reserved range is used for. It is its own text form.
type Purpose string

// Ranges. They collide with one another.
const (
	PodCIDR      Purpose = "pod-cidr"      // pods of this cluster
	ServiceCIDR  Purpose = "service-cidr"  // Services of this cluster
	NodeNetwork  Purpose = "node-network"  // nodes of this cluster
	ExternalCIDR Purpose = "external-cidr" // by which peers see what is not a pod here
	InternalCIDR Purpose = "internal-cidr" // ends of this cluster's overlay
	Reserved     Purpose = "reserved"      // kept free on the user's word
	PeerPods     Purpose = "peer-pods"     // by which pods of a peer are reached from here
	PeerExternal Purpose = "peer-external" // by which a peer's external CIDR is reached from here
	PeerUnderlay Purpose = "peer-underlay" // real addresses of a peer's nodes and endpoints, to keep clear of
	OutsideHost  Purpose = "outside-host"  // own address of a host that a peer reaches, to keep clear of
)

// Single addresses inside a range. They collide among themselves only.
const (
	GatewayAddress Purpose = "gateway-address" // in the internal CIDR: a gateway's end of the overlay
	ExposedHost    Purpose = "exposed-host"    // in the external CIDR: a host outside the cluster
)

// uses has every purpose: its name in messages and, for a single address, the purpose of the range around it.
var uses = map[Purpose]struct {
	label  string
	within Purpose
}{
	PodCIDR:        {label: "pod CIDR"},
	ServiceCIDR:    {label: "service CIDR"},
	NodeNetwork:    {label: "node network"},
	ExternalCIDR:   {label: "external CIDR"},
	InternalCIDR:   {label: "internal CIDR"},
	Reserved:       {label: "reserved range"},
	PeerPods:       {label: "pods"},
	PeerExternal:   {label: "external CIDR"},
	PeerUnderlay:   {label: "underlay"},
	OutsideHost:    {label: "host outside"},
	GatewayAddress: {label: "gateway address", within: InternalCIDR},
	ExposedHost:    {label: "exposed host", within: ExternalCIDR},
}

// Reservation is a range and who holds it for what.
type Reservation struct {
	Range   netip.Prefix `json:"range"` // without host bits; a single address is a /32
	Owner   Owner        `json:"owner"`
	Purpose Purpose      `json:"purpose"`
	// Real is the range, of the same length, that Range stands for where it is real; the zero value: itself
	// or nothing.
	Real netip.Prefix `json:"real,omitzero"`
	// Shared allows overlap with other shared reservations: for facts that several sources report, such as
	// node networks. What is not shared overlaps nothing.
	Shared bool `json:"shared,omitempty"`
}

// Use describes owner and purpose to a person: `service CIDR`, `peering "b" pods`, `user "vpn" reserved range`.
func (r Reservation) Use() string {
	label := uses[r.Purpose].label
	if name, ok := r.Owner.User(); ok {
		return fmt.Sprintf("user %q %s", name, label)
	}
	if name, ok := r.Owner.Peering(); ok {
		return fmt.Sprintf("peering %q %s", name, label)
	}
	return label
}

// Compare orders reservations by range, the wider first where two begin together, then owner, purpose and
// real range.
func (r Reservation) Compare(o Reservation) int {
	return cmp.Or(r.Range.Compare(o.Range), cmp.Compare(r.Owner, o.Owner), cmp.Compare(r.Purpose, o.Purpose),
		r.Real.Compare(o.Real))
}

// overlapAllowed reports whether the two may hold the same addresses.
func (r Reservation) overlapAllowed(o Reservation) bool { return r.Shared && o.Shared }

func (r Reservation) claim() claim { return claim{r.Owner, r.Purpose, r.Real} }

// Validate refuses what no registry keeps, whatever it holds: an owner, a purpose or a range that is none, a real
// range of another length, and addresses that are not for hosts, unless they are shared.
func (r Reservation) Validate() error {
	if err := r.claim().validate(); err != nil {
		return err
	}
	if err := canonical(r.Range); err != nil {
		return err
	}
	switch {
	case r.Real.IsValid() && !sameShape(r.Real, r.Range):
		return fmt.Errorf("real range %s has another length", r.Real)
	case r.claim().address() && !r.Range.IsSingleIP():
		return fmt.Errorf("%s is a single address", r.Use())
	case !r.Shared:
		return routable(r.Range)
	}
	return nil
}

// claim is what a range is acquired for: who asks for the same again is given the same.
type claim struct {
	owner   Owner
	purpose Purpose
	real    netip.Prefix
}

// address reports whether the claim is for a single address inside a range.
func (c claim) address() bool { return uses[c.purpose].within != "" }

func (c claim) validate() error {
	if err := c.owner.Validate(); err != nil {
		return err
	}
	if _, ok := uses[c.purpose]; !ok {
		return fmt.Errorf("unknown purpose %q", string(c.purpose))
	}
	if c.real.IsValid() {
		return canonical(c.real)
	}
	return nil
}
