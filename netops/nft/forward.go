package nft

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ForwardChain is a base chain of another's at the hook of forwarded IPv4 packets. Where its policy is to drop, a
// packet that no rule of that chain accepts is lost: an accept counts for its own chain alone, no other table can undo
// a drop (nft(8), "verdict statements").
type ForwardChain struct {
	Family Family
	Table  string
	Name   string
	Drop   bool
	Passes []Pass // rules of ours in it, sorted
}

// Way is how packets meet a link.
type Way string

// The ways.
const (
	From Way = "from" // packets came in by the link
	To   Way = "to"   // packets leave by it
)

// Pass is a rule of ours, first in a chain of another's, that accepts packets from or to a link. iptables-nft shows it
// as one of its own: all of its parts are such as iptables makes.
type Pass struct {
	Family Family
	Table  string
	Chain  string
	Way    Way
	Link   string // a name, or the beginning of names before a "*"
}

// comment marks the rule as ours, in the kernel and for whoever lists the rules.
func (p Pass) comment(owner string) string { return fmt.Sprintf("%s: %s %s", owner, p.Way, p.Link) }

// String is the rule as plans and errors show it.
func (p Pass) String() string {
	return fmt.Sprintf("pass %s %s in chain %s %s %s", p.Way, p.Link, p.Family, p.Table, p.Chain)
}

// ForwardChains returns the chains of all tables but owner's own; passes are rules whose comment names owner.
func (c *Conn) ForwardChains(owner string) ([]ForwardChain, error) {
	last := c.forward[owner]
	all, err := again(c, &last, func() (all []ForwardChain, err error) {
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
	c.forward[owner] = last
	return slices.Clone(all), nil
}

func (c *Conn) readForward(family Family, owner string) ([]ForwardChain, error) {
	answers, err := c.request(family, unix.NFT_MSG_GETCHAIN, netlink.Dump)
	if err != nil {
		return nil, err
	}
	var found []ForwardChain
	for _, a := range answers {
		hook, err := readHook(a)
		if err != nil {
			return nil, err
		}
		chain := ForwardChain{Family: family, Table: a.string(unix.NFTA_CHAIN_TABLE), Name: a.string(unix.NFTA_CHAIN_NAME)}
		if hook == nil || hook.Point != "forward" || chain.Table == owner {
			continue
		}
		chain.Drop = hook.Drop
		marked, err := c.markedRules(chain, owner)
		if err != nil {
			return nil, err
		}
		for _, r := range marked {
			chain.Passes = append(chain.Passes, r.pass)
		}
		slices.SortFunc(chain.Passes, func(a, b Pass) int { return strings.Compare(a.String(), b.String()) })
		found = append(found, chain)
	}
	return found, nil
}

// markedRule is a pass as the kernel has it.
type markedRule struct {
	pass   Pass
	handle uint64
}

// markedRules returns the rules of a chain whose comment names the owner.
func (c *Conn) markedRules(chain ForwardChain, owner string) ([]markedRule, error) {
	answers, err := c.request(chain.Family, unix.NFT_MSG_GETRULE, netlink.Dump,
		attr(unix.NFTA_RULE_TABLE, chain.Table), attr(unix.NFTA_RULE_CHAIN, chain.Name))
	if err != nil {
		return nil, err
	}
	var found []markedRule
	for _, a := range answers {
		if a.string(unix.NFTA_RULE_TABLE) != chain.Table || a.string(unix.NFTA_RULE_CHAIN) != chain.Name {
			continue
		}
		text, _ := userdata.GetString(a[unix.NFTA_RULE_USERDATA], commentType)
		words := strings.Fields(strings.TrimPrefix(text, owner+": "))
		if !strings.HasPrefix(text, owner+": ") || len(words) != 2 {
			continue
		}
		found = append(found, markedRule{
			pass: Pass{
				Family: chain.Family, Table: chain.Table, Chain: chain.Name, Way: Way(words[0]), Link: words[1],
			},
			handle: a.handle(),
		})
	}
	return found, nil
}

// AddPass puts the rule first in its chain.
func (c *Conn) AddPass(owner string, p Pass) error {
	rule := &nftables.Rule{Table: p.table(), Chain: &nftables.Chain{Table: p.table(), Name: p.Chain}}
	made := Rule{p.match(), Counter(), Accept(), Comment(p.comment(owner))}
	for _, e := range made.steps() {
		rule.Exprs = append(rule.Exprs, e.code)
	}
	rule.UserData = made.userData()
	c.conn.InsertRule(rule)
	return c.flush()
}

// match is the rule's condition.
func (p Pass) match() Expr {
	begin, _ := strings.CutSuffix(p.Link, anyEnd)
	end := p.Link[len(begin):]
	if p.Way == To {
		return matchInterface("oifname", expr.MetaKeyOIFNAME, expr.CmpOpEq, begin, end)
	}
	return matchInterface("iifname", expr.MetaKeyIIFNAME, expr.CmpOpEq, begin, end)
}

// RemovePass removes the rule, as often as it is there.
func (c *Conn) RemovePass(owner string, p Pass) error {
	marked, err := c.markedRules(ForwardChain{Family: p.Family, Table: p.Table, Name: p.Chain}, owner)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range marked {
		if r.pass != p {
			continue
		}
		rule := &nftables.Rule{Table: p.table(), Chain: &nftables.Chain{Table: p.table(), Name: p.Chain}, Handle: r.handle}
		errs = append(errs, c.conn.DelRule(rule))
	}
	return errors.Join(append(errs, c.flush())...)
}

func (p Pass) table() *nftables.Table {
	return &nftables.Table{Name: p.Table, Family: p.Family.number()}
}
