// Package ipam allocates the address ranges of a cluster. A Registry holds reservations, rejects overlapping ones and
// finds free ranges and addresses. Translation of addresses between clusters is in package translate.
//
// The package is pure: no client, no clock, no randomness. The same operations in the same order produce the same
// reservations, and the free space depends only on the current reservations, not on their history. Package store
// encodes a Registry for storage in a cluster.
package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// Owner identifies the owner of a reservation: Cluster, a Peering or a User. It is its own text form, such as
// "peering/b".
type Owner string

// Cluster owns the ranges of this cluster itself, independent of its peerings.
const Cluster Owner = "cluster"

const (
	peeringPrefix = "peering/"
	userPrefix    = "user/"
)

// Peering returns the owner for the peering with that name.
func Peering(name string) Owner { return Owner(peeringPrefix + name) }

// Peering returns the name of the peering, and false if the owner is not a peering.
func (o Owner) Peering() (name string, ok bool) { return strings.CutPrefix(string(o), peeringPrefix) }

// User returns the owner for reservations under a freely chosen name: a person, a CI job, another program.
func User(name string) Owner { return Owner(userPrefix + name) }

// User returns the chosen name, and false if the owner is not a user.
func (o Owner) User() (name string, ok bool) { return strings.CutPrefix(string(o), userPrefix) }

// Validate rejects malformed owners.
func (o Owner) Validate() error {
	if o == Cluster {
		return nil
	}
	name, ok := o.Peering()
	if !ok {
		name, ok = o.User()
	}
	if !ok || !ownerName.MatchString(name) {
		return fmt.Errorf("owner %q: not %s, %sNAME or %sNAME, with a name of letters, digits, '-', '.' and '_'",
			string(o), Cluster, peeringPrefix, userPrefix)
	}
	return nil
}

// ownerName matches names of owners: they have the characters of Kubernetes names.
var ownerName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// Purpose is the use of a reserved range. It is its own text form.
type Purpose string

// Purposes of ranges. Ranges of all purposes share one address space and must not overlap.
const (
	PodCIDR      Purpose = "pod-cidr"      // pods of this cluster
	ServiceCIDR  Purpose = "service-cidr"  // Services of this cluster
	NodeNetwork  Purpose = "node-network"  // nodes of this cluster
	ExternalCIDR Purpose = "external-cidr" // remapped addresses of this cluster's nodes and exposed hosts
	InternalCIDR Purpose = "internal-cidr" // overlay addresses of this cluster's nodes and gateways
	Reserved     Purpose = "reserved"      // excluded from allocation by the user
	PeerPods     Purpose = "peer-pods"     // pod CIDR of a peer as it is reached from this cluster
	PeerExternal Purpose = "peer-external" // external CIDR of a peer as it is reached from this cluster
	PeerUnderlay Purpose = "peer-underlay" // real addresses of a peer's nodes and endpoints, never allocated
	OutsideHost  Purpose = "outside-host"  // own address of a host that a peer reaches, never allocated
)

// Purposes of addresses inside a range. They conflict only with each other.
const (
	Gateways    Purpose = "gateways"     // in the internal CIDR: overlay addresses of a peering's gateways
	ExposedHost Purpose = "exposed-host" // in the external CIDR: a host outside the cluster
)

// uses contains all purposes: the label in messages and, for addresses inside a range, the purpose of that range and
// the number of addresses, as a power of two.
var uses = map[Purpose]struct {
	label  string
	within Purpose
	bits   int
}{
	PodCIDR:      {label: "pod CIDR"},
	ServiceCIDR:  {label: "service CIDR"},
	NodeNetwork:  {label: "node network"},
	ExternalCIDR: {label: "external CIDR"},
	InternalCIDR: {label: "internal CIDR"},
	Reserved:     {label: "reserved range"},
	PeerPods:     {label: "pods"},
	PeerExternal: {label: "external CIDR"},
	PeerUnderlay: {label: "underlay"},
	OutsideHost:  {label: "host outside"},
	Gateways:     {label: "gateways", within: InternalCIDR, bits: 3}, // one each
	ExposedHost:  {label: "exposed host", within: ExternalCIDR},
}

// Reservation is a range with its owner and purpose.
type Reservation struct {
	Range   netip.Prefix `json:"range"` // without host bits; a single address is a /32, gateways are a /29
	Owner   Owner        `json:"owner"`
	Purpose Purpose      `json:"purpose"`
	// Real is the range that is remapped to Range. It has the same length. The zero value: not remapped, or not
	// applicable.
	Real netip.Prefix `json:"real,omitzero"`
	// Shared allows overlap with other shared reservations. It is for facts that several sources report, such as node
	// networks. Reservations that are not shared overlap no other.
	Shared bool `json:"shared,omitempty"`
}

// Use describes owner and purpose in messages: `service CIDR`, `peering "b" pods`, `user "vpn" reserved range`.
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

// Compare orders reservations by range, the wider first of two with the same address, then by owner, purpose and real
// range.
func (r Reservation) Compare(o Reservation) int {
	return cmp.Or(r.Range.Compare(o.Range), cmp.Compare(r.Owner, o.Owner), cmp.Compare(r.Purpose, o.Purpose),
		r.Real.Compare(o.Real))
}

func (r Reservation) claim() claim { return claim{r.Owner, r.Purpose, r.Real} }

// Validate rejects reservations that no registry accepts, whatever its state: an invalid owner, purpose or range, a
// real range of a different length, and, unless they are shared, ranges that cannot be assigned to hosts.
func (r Reservation) Validate() error {
	if err := cmp.Or(r.claim().validate(), canonical(r.Range)); err != nil {
		return err
	}
	switch {
	case r.Real.IsValid() && (r.Real.Bits() != r.Range.Bits() || r.Real.Addr().Is4() != r.Range.Addr().Is4()):
		return fmt.Errorf("real range %s has another length", r.Real)
	case r.claim().address() && r.Range.Addr().BitLen()-r.Range.Bits() != uses[r.Purpose].bits:
		return fmt.Errorf("%s is a /%d", r.Use(), r.Range.Addr().BitLen()-uses[r.Purpose].bits)
	case !r.Shared:
		return routable(r.Range)
	}
	return nil
}

// claim is the key under which a range is acquired. The same claim returns the same range.
type claim struct {
	owner   Owner
	purpose Purpose
	real    netip.Prefix
}

// address reports whether the claim is for addresses inside a range.
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
