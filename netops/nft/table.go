// Package nft represents one nftables table of family ip or ip6 as a value that can be compared, read from the kernel
// and applied to it in one transaction, which prints as nft text. It does not depend on the purpose of the table.
//
//	have, err := conn.Observe(nft.IP, "filter")
//	plan := nft.Diff(have, want)
//	err = conn.Apply(plan)
//
// Each expression is created by a constructor, such as SAddr or Drop, with nft text and netlink form together. Maps,
// stateful objects, flowtables and sets other than of IPv4 prefixes are not supported. The kernel itself fills sets of
// senders. A table of family ip6 has no sets, and no rules that read an IPv4 header.
package nft

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"liqonet.io/liqonet/internal/cidr"
)

// Table is the desired or observed content of one table. The zero value means no table.
type Table struct {
	Family Family // "": IP
	Name   string
	Sets   []Set
	Chains []Chain
	// Dormant means that the kernel skips the chains of the table. It is observed only.
	Dormant bool
}

// Set is a named set of IPv4 addresses or ranges. NewSet creates one from prefixes in any order.
type Set struct {
	Name string
	// Hosts means that all elements are single addresses, so that the kernel uses a hash table instead of an interval
	// tree.
	Hosts bool
	// Senders is the maximum number of addresses that the kernel adds to the set, by Meter or UpdateDAddr; 0: another
	// kind of set. Such a set has no Elements.
	Senders uint32
	// Timeout is the time after which an element of Senders without packets is removed: whole minutes.
	Timeout time.Duration
	// Ports means that each of Senders is an address and a UDP port.
	Ports    bool
	Elements []netip.Prefix // sorted, disjoint, without host bits; a single address is a /32
	// Foreign describes why an observed set differs from all sets of this package. Diff replaces such a set.
	Foreign string
}

// Chain is a sequence of rules, attached to a hook or, with a nil Hook, reached by a jump.
type Chain struct {
	Name  string
	Hook  *Hook
	Rules []Rule
}

// Hook attaches a chain to the kernel's packet path.
type Hook struct {
	Type     string // "filter", "nat", "route"
	Point    string // "prerouting", "input", "forward", "output", "postrouting"
	Priority int
	Drop     bool // policy drop; false is accept
}

// Rule is a list of matches followed by statements; all matches must apply.
type Rule []Expr

// NewSet returns a set of prefixes in any order: without host bits, and without prefixes that another one covers.
func NewSet(name string, prefixes ...netip.Prefix) Set {
	return Set{Name: name, Elements: cidr.Outermost(prefixes)}
}

// id returns the table's identity in the language of nft(8), such as "ip filter".
func (t Table) id() string { return string(cmp.Or(t.Family, IP)) + " " + t.Name }

// hookPoints are the hooks in the kernel's numbering, enum nf_inet_hooks.
var hookPoints = []string{"prerouting", "input", "forward", "output", "postrouting"}

// keyText returns the type of the elements.
func (s Set) keyText() string {
	if s.Ports {
		return "ipv4_addr . inet_service"
	}
	return "ipv4_addr"
}

// options returns the properties of a set besides its type.
func (s Set) options() []string {
	switch {
	case s.Senders > 0:
		return []string{fmt.Sprintf("size %d", s.Senders), "flags dynamic,timeout", fmt.Sprintf("timeout %dm", s.Timeout/time.Minute)}
	case s.Hosts:
		return nil
	}
	return []string{"flags interval"}
}

// String returns the hook in the language of nft(8).
func (h Hook) String() string {
	policy := "accept"
	if h.Drop {
		policy = "drop"
	}
	return fmt.Sprintf("type %s hook %s priority %d; policy %s;", h.Type, h.Point, h.Priority, policy)
}
