package nft

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables/expr"
)

// Expr is a match or a statement of a rule, in two forms: nft text, and the expressions of the kernel's virtual
// machine. An Expr that Observe returns has the kernel's form only, printed as a dump.
type Expr struct {
	text string
	code []expr.Any
	// proto is the transport protocol that code requires; 0: any. Rule.explicit adds the match.
	proto Proto
	// implies means that text already implies proto, as "udp dport" does.
	implies bool
	// members are the elements, one byte each, of the anonymous set that the lookup in code refers to.
	members []byte

	chain, set string // names that must exist in the table

	observed string // canonical form from the kernel; only text is set besides it
	err      error  // invalid argument
}

// unless returns the expression or, for invalid arguments, an expression with an error that cannot be written.
func (e Expr) unless(senseless bool, why string) Expr {
	if senseless {
		return Expr{err: fmt.Errorf("%s: %s", e.text, why)}
	}
	return e
}

// explicit returns the rule with matches of the protocols that its expressions require. Each is added once, where
// nft(8) places it: at a text that implies it, if there is one.
func (r Rule) explicit() Rule {
	var all Rule
	var proto Proto
	for i, e := range r {
		later := func(l Expr) bool { return l.proto == e.proto && l.implies }
		if e.proto != 0 && e.proto != proto && (e.implies || !slices.ContainsFunc(r[i+1:], later)) {
			proto = e.proto
			match := Expr{text: "meta l4proto " + proto.String(), code: compare(meta(expr.MetaKeyL4PROTO), expr.CmpOpEq, []byte{byte(proto)})}
			if e.implies {
				match.text = ""
			}
			all = append(all, match)
		}
		all = append(all, e)
	}
	return all
}

// canonical returns the rule in a form that is identical for rules with the same effect, including comments.
func (r Rule) canonical() []string {
	var lines []string
	for _, e := range r.explicit() {
		if e.observed != "" {
			lines = append(lines, e.observed)
		}
		for _, c := range e.code {
			lines = append(lines, canonicalExpr(c, e.members))
		}
	}
	return lines
}

// Equal reports whether the rules have the same effect, without counter values.
func (r Rule) Equal(o Rule) bool { return slices.Equal(r.canonical(), o.canonical()) }

// String returns the rule in the language of nft(8), as "nft list" prints it.
func (r Rule) String() string {
	var words []string
	for _, e := range r.explicit() {
		if e.text != "" {
			words = append(words, e.text)
		}
	}
	return strings.Join(words, " ")
}

// validate returns the first expression's error, or that of contradictory expressions.
func (r Rule) validate() error {
	var proto Proto
	for _, e := range r {
		switch {
		case e.err != nil:
			return e.err
		case e.observed != "":
			return fmt.Errorf("%s: read from the kernel, cannot be written", e.text)
		case e.proto != 0 && proto != 0 && e.proto != proto:
			return fmt.Errorf("%s: the rule matches protocol %s already", e.text, proto)
		case e.proto != 0:
			proto = e.proto
		}
	}
	return nil
}
