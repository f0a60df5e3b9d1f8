package nft

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables/expr"
)

// Expr is a match or a statement of a rule. It has two forms, made together: nft text, and the expressions of
// the kernel's virtual machine. An Expr that Observe returns has the kernel's form alone, printed as a dump.
type Expr struct {
	text string
	code []expr.Any
	// proto is the transport protocol that code presumes; 0 is any. Rule.steps adds the match.
	proto Proto
	// implies tells that text says proto by itself, as "udp dport" does.
	implies bool
	// members are the elements, one byte each, of the anonymous set to which the lookup in code refers.
	members []byte

	chain, set string // names in the table that must exist

	observed string // canonical form of what the kernel has; excludes all but text
	err      error  // an argument that makes no sense
}

// unless is the expression, or, if its arguments make no sense, one that says why and cannot be written.
func (e Expr) unless(senseless bool, why string) Expr {
	if senseless {
		return Expr{err: fmt.Errorf("%s: %s", e.text, why)}
	}
	return e
}

// step is one expression of the kernel's virtual machine on its way into the kernel or from it.
type step struct {
	code     expr.Any
	members  []byte
	observed string
}

// steps returns what the kernel executes for the rule.
func (r Rule) steps() []step {
	var steps []step
	var proto Proto
	for i, e := range r {
		if e.observed != "" {
			steps = append(steps, step{observed: e.observed})
		}
		if r.matchesProtocol(i, proto) {
			proto = e.proto
			for _, c := range matchProtocol(proto) {
				steps = append(steps, step{code: c})
			}
		}
		for _, c := range e.code {
			steps = append(steps, step{code: c, members: e.members})
		}
	}
	return steps
}

// matchesProtocol reports whether the match of the protocol comes before expression i, if that of proto came
// already. It comes once, and where nft(8) places it too: at a text that implies it, if there is one.
func (r Rule) matchesProtocol(i int, proto Proto) bool {
	e := r[i]
	later := func(l Expr) bool { return l.proto == e.proto && l.implies }
	return e.proto != 0 && e.proto != proto && (e.implies || !slices.ContainsFunc(r[i+1:], later))
}

// canonical returns the rule in a form in which rules with the same effect, comments included, are the same.
func (r Rule) canonical() []string {
	var lines []string
	for _, s := range r.steps() {
		if s.observed == "" {
			s.observed = canonicalExpr(s.code, s.members)
		}
		lines = append(lines, s.observed)
	}
	return lines
}

// Equal reports whether both rules do the same, counter values aside.
func (r Rule) Equal(o Rule) bool { return slices.Equal(r.canonical(), o.canonical()) }

// String is the rule in the language of nft(8), as "nft list" prints it.
func (r Rule) String() string {
	var words []string
	var proto Proto
	for i, e := range r {
		if r.matchesProtocol(i, proto) {
			proto = e.proto
			if !e.implies {
				words = append(words, "meta l4proto "+proto.String())
			}
		}
		if e.text != "" {
			words = append(words, e.text)
		}
	}
	return strings.Join(words, " ")
}

// validate returns the first expression's error, or that of a rule that contradicts itself.
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
