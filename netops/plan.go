package netops

import (
	"fmt"
	"strings"

	"liqonet.io/liqonet/netops/nft"
)

// Plan is what leads from one state to another: steps in the order in which Apply executes them. The zero value
// does nothing.
type Plan struct {
	Steps []Step
}

// Step is one change of one object: a Link, Membership, Address, Neighbour, Nexthop, NexthopGroup, Route, Rule,
// KernelRule, Firewall or nft.Pass.
type Step struct {
	Op     Op
	Object fmt.Stringer
}

// Op is what a step does with its object.
type Op rune

// The operations. Replace brings an object that exists into the wanted shape without a moment of absence.
const (
	Add     Op = '+'
	Replace Op = '~'
	Remove  Op = '-'
)

// KernelRule is the rule "from all lookup local" at priority 0 that the kernel makes in every namespace.
type KernelRule struct{}

// String is the rule as plans and errors show it.
func (KernelRule) String() string { return Rule{Table: localTable}.String() }

// Firewall is a change of one of our nftables tables; it is one transaction.
type Firewall struct {
	Plan nft.Plan
	Bare bool // no table that judges what arrives is there before: see Apply
}

// String is the transaction in the input language of nft(8), indented below a title.
func (f Firewall) String() string {
	return "firewall\n\t" + strings.ReplaceAll(strings.TrimSpace(f.Plan.String()), "\n", "\n\t")
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Steps) == 0 }

// String has a line for each step; those of a firewall's transaction are indented.
func (p Plan) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		b.WriteString(s.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Kind is the kind of the step's object in a word: the first one of its text.
func (s Step) Kind() string { return strings.Fields(s.Object.String())[0] }

// String is the operation's sign and the object.
func (s Step) String() string { return string(s.Op) + " " + s.Object.String() }

// String is the operation as errors name it.
func (o Op) String() string {
	return map[Op]string{Add: "add", Replace: "replace", Remove: "remove"}[o]
}
