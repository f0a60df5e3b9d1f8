// Package nft is one nftables table of family ip as a value: it can be compared, printed as nft text, read
// from the kernel and applied to it in one transaction. It knows nothing of what the table is for.
package nft

import "net/netip"

// Table is the wanted or observed content of one table of family ip. The zero value stands for no table.
type Table struct {
	Name   string
	Sets   []Set
	Chains []Chain
}

// Set is a named set of IPv4 addresses or ranges.
type Set struct {
	Name     string
	Elements []netip.Prefix // sorted, disjoint; a single address is a /32
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

// Rule is a list of matches followed by statements; all matches must hold.
type Rule []Expr
