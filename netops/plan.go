package netops

import (
	"fmt"
	"strings"

	"liqonet.io/liqonet/netops/nft"
)

// Plan is the difference of two states: steps in the order in which Apply executes them. The zero value has no steps.
type Plan struct {
	Steps []Step
}

// Step is one change of one object: a Link, ForeignMember, Address, Neighbour, Nexthop, NexthopGroup, Route, Rule,
// KernelRule, Firewall or nft.Pass.
type Step struct {
	Op     Op
	Object fmt.Stringer
}

// Op is the operation of a step.
type Op rune

// The operations. Replace changes an existing object without interruption.
const (
	Add     Op = '+'
	Replace Op = '~'
	Remove  Op = '-'
)

// KernelRule is the rule "from all lookup local" at priority 0 that the kernel creates in every namespace.
type KernelRule struct{}

// String returns the rule for plans and errors.
func (KernelRule) String() string { return Rule{Table: LocalTable}.String() }

// Firewall is a change of one of our nftables tables, in one transaction.
type Firewall struct {
	Plan       nft.Plan
	Unfiltered bool // no table filters arriving packets before this change; see Apply
}

// String returns the transaction in the input language of nft(8), indented below a title.
func (f Firewall) String() string {
	return "firewall\n\t" + strings.ReplaceAll(strings.TrimSpace(f.Plan.String()), "\n", "\n\t")
}

// Empty reports whether the plan has no steps.
func (p Plan) Empty() bool { return len(p.Steps) == 0 }

// String returns a line per step. Lines of a firewall transaction are indented.
func (p Plan) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		b.WriteString(s.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Kind returns the kind of the step's object: the first word of its text.
func (s Step) Kind() string { return strings.Fields(s.Object.String())[0] }

// String returns the operation's sign and the object.
func (s Step) String() string { return string(s.Op) + " " + s.Object.String() }

// String returns the operation for errors.
func (o Op) String() string {
	return map[Op]string{Add: "add", Replace: "replace", Remove: "remove"}[o]
}
