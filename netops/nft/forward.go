package nft

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

// ForwardChain is a foreign base chain at the forward hook of IPv4 packets. If its policy is drop, packets that no rule
// of that chain accepts are lost: an accept verdict applies to its own chain only, and no other table can undo a drop
// (nft(8), "verdict statements").
type ForwardChain struct {
	Family Family
	Table  string
	Name   string
	Drop   bool
	Passes []Pass // our rules in it, sorted
}

// Way is the relation of packets to a link.
type Way string

// The relations.
const (
	From Way = "from" // packets that arrive on the link
	To   Way = "to"   // packets that leave on it
)

// Pass is a rule of ours, first in a foreign chain, that accepts packets from or to a link. Its comment identifies it
// as ours. iptables-nft shows it as one of its own rules: it has only expressions that iptables uses.
type Pass struct {
	Family Family
	Table  string
	Chain  string
	Way    Way
	Link   string // a name, or a prefix of names followed by "*"
}

// String returns the rule for plans and errors.
func (p Pass) String() string {
	return fmt.Sprintf("pass %s %s in chain %s %s %s", p.Way, p.Link, p.Family, p.Table, p.Chain)
}

// ForwardChains returns the chains of all tables except that of owner. Passes are rules with owner in their comment.
func (c *Conn) ForwardChains(owner string) ([]ForwardChain, error) {
	all, err := cached(c, c.forward, owner, func() (all []ForwardChain, err error) {
		for _, family := range []Family{IP, Inet} {
			some, err := c.readForward(family, owner)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
		return all, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read chains at hook forward: %w", err)
	}
	return slices.Clone(all), nil
}

func (c *Conn) readForward(family Family, owner string) ([]ForwardChain, error) {
	listed, err := c.conn.ListChainsOfTableFamily(family.number())
	if err != nil {
		return nil, err
	}
	var found []ForwardChain
	for _, l := range listed {
		hook := readHook(l)
		if hook == nil || hook.Point != "forward" || l.Table.Name == owner {
			continue
		}
		handles, err := c.passes(family, l.Table.Name, l.Name, owner)
		if err != nil {
			return nil, err
		}
		passes := slices.SortedFunc(maps.Keys(handles), func(a, b Pass) int { return strings.Compare(a.String(), b.String()) })
		found = append(found, ForwardChain{Family: family, Table: l.Table.Name, Name: l.Name, Drop: hook.Drop, Passes: passes})
	}
	return found, nil
}

// passes returns the rules of a chain with owner in their comment, and the handles of each.
func (c *Conn) passes(family Family, table, chain, owner string) (map[Pass][]uint64, error) {
	rules, err := c.rules(family, table, chain)
	if err != nil {
		return nil, err
	}
	handles := make(map[Pass][]uint64)
	for _, r := range rules {
		comment, _ := userdata.GetString(r[unix.NFTA_RULE_USERDATA], ruleComment)
		text, ours := strings.CutPrefix(comment, owner+": ")
		words := strings.Fields(text)
		if !ours || len(words) != 2 {
			continue
		}
		p := Pass{Family: family, Table: table, Chain: chain, Way: Way(words[0]), Link: words[1]}
		handle, _ := r.long(unix.NFTA_RULE_HANDLE)
		handles[p] = append(handles[p], handle)
	}
	return handles, nil
}

// ruleComment is NFTNL_UDATA_RULE_COMMENT of libnftnl.
const ruleComment userdata.Type = 0

// AddPass inserts the rule at the beginning of its chain.
func (c *Conn) AddPass(owner string, p Pass) error {
	rule := p.rule(0)
	rule.Exprs = slices.Concat(p.match().code, Counter().code, Accept().code)
	rule.UserData = userdata.AppendString(nil, ruleComment, fmt.Sprintf("%s: %s %s", owner, p.Way, p.Link))
	c.conn.InsertRule(rule)
	return c.flush()
}

// match returns the rule's condition.
func (p Pass) match() Expr {
	begin, _ := strings.CutSuffix(p.Link, anyEnd)
	of := arrival
	if p.Way == To {
		of = departure
	}
	return of.named(expr.CmpOpEq, begin, p.Link[len(begin):])
}

// RemovePass removes all copies of the rule.
func (c *Conn) RemovePass(owner string, p Pass) error {
	handles, err := c.passes(p.Family, p.Table, p.Chain, owner)
	if err != nil {
		return err
	}
	var errs []error
	for _, handle := range handles[p] {
		errs = append(errs, c.conn.DelRule(p.rule(handle)))
	}
	return errors.Join(append(errs, c.flush())...)
}

// rule returns the rule with that handle in the chain.
func (p Pass) rule(handle uint64) *nftables.Rule {
	table := &nftables.Table{Name: p.Table, Family: p.Family.number()}
	return &nftables.Rule{Table: table, Chain: &nftables.Chain{Table: table, Name: p.Chain}, Handle: handle}
}
