package nft

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// Plan is the difference between two tables: what one transaction does. The zero value does nothing.
type Plan struct {
	table Table // its identity alone
	ops   []op
	err   error
}

// op is one command of a transaction, in both forms.
type op interface {
	// text returns the command in the language of nft(8), for the table of an identity.
	text(table string) string
	// queue adds the command to the transaction.
	queue(b *batch) error
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.ops) == 0 && p.err == nil }

// Table is the table that the plan changes, in the language of nft(8): family and name.
func (p Plan) Table() string { return p.table.id() }

// Err tells why the wanted table cannot be: Apply returns the same and does nothing.
func (p Plan) Err() error { return p.err }

// String is the transaction in the input language of nft(8), one command a line.
func (p Plan) String() string {
	if p.err != nil {
		return fmt.Sprintf("# impossible: %s\n", strings.ReplaceAll(p.err.Error(), "\n", "; "))
	}
	var b strings.Builder
	for _, o := range p.ops {
		b.WriteString(o.text(p.table.id()) + "\n")
	}
	return b.String()
}

// batch is a transaction that is being written.
type batch struct {
	conn  *nftables.Conn
	table *nftables.Table
	// anonymous counts the anonymous sets: within a transaction they are known by a number.
	anonymous uint32
}

func (b *batch) set(name string, hosts bool) *nftables.Set {
	return &nftables.Set{Table: b.table, Name: name, Interval: !hosts, KeyType: nftables.TypeIPAddr}
}

func (b *batch) chain(name string) *nftables.Chain {
	return &nftables.Chain{Table: b.table, Name: name}
}

// nextID returns a set's number, never 0: with 0 google/nftables takes one of its own.
func (b *batch) nextID() uint32 {
	b.anonymous++
	return b.anonymous
}

// createTable fails, and with it the transaction, where there is a table of the name.
type createTable struct{}

func (createTable) text(table string) string { return "create table " + table }

func (createTable) queue(b *batch) error {
	b.conn.CreateTable(b.table)
	return nil
}

// wakeTable clears the flags of a table that is there.
type wakeTable struct{}

func (wakeTable) text(table string) string { return "add table " + table }

func (wakeTable) queue(b *batch) error {
	b.conn.AddTable(b.table)
	return nil
}

// deleteTable deletes a table with all that is in it.
type deleteTable struct{ table Table }

func (o deleteTable) text(string) string { return "delete table " + o.table.id() }

func (o deleteTable) queue(b *batch) error {
	b.conn.DelTable(&nftables.Table{Name: o.table.Name, Family: o.table.Family.number()})
	return nil
}

// addSet adds a set without elements.
type addSet struct {
	name  string
	hosts bool
}

func (o addSet) text(table string) string {
	if o.hosts {
		return fmt.Sprintf("add set %s %s { type ipv4_addr; }", table, o.name)
	}
	return fmt.Sprintf("add set %s %s { type ipv4_addr; flags interval; }", table, o.name)
}

func (o addSet) queue(b *batch) error {
	s := b.set(o.name, o.hosts)
	s.ID = b.nextID()
	return b.conn.AddSet(s, nil)
}

type deleteSet struct{ name string }

func (o deleteSet) text(table string) string {
	return fmt.Sprintf("delete set %s %s", table, o.name)
}

func (o deleteSet) queue(b *batch) error {
	b.conn.DelSet(&nftables.Set{Table: b.table, Name: o.name})
	return nil
}

// changeElements adds elements to a set, or deletes them.
type changeElements struct {
	set      string
	hosts    bool // what the set is
	remove   bool
	prefixes []netip.Prefix
}

func (o changeElements) text(table string) string {
	verb := "add"
	if o.remove {
		verb = "delete"
	}
	words := make([]string, len(o.prefixes))
	for i, p := range o.prefixes {
		words[i] = prefixText(p)
	}
	return fmt.Sprintf("%s element %s %s { %s }", verb, table, o.set, strings.Join(words, ", "))
}

// elementsPerMessage keeps the list of elements below the 65535 bytes of a netlink attribute: a prefix is two
// elements, the first of 20 bytes and the second, with its flag, of 28.
const elementsPerMessage = 1000

func (o changeElements) queue(b *batch) error {
	send := b.conn.SetAddElements
	if o.remove {
		send = b.conn.SetDeleteElements
	}
	for part := range slices.Chunk(o.prefixes, elementsPerMessage) {
		elements := intervalElements(part)
		if o.hosts {
			elements = hostElements(part)
		}
		if err := send(b.set(o.set, o.hosts), elements); err != nil {
			return err
		}
	}
	return nil
}

// addChain adds a chain without rules, or changes the policy of one that is there.
type addChain struct {
	name string
	hook *Hook
}

func (o addChain) text(table string) string {
	if o.hook == nil {
		return fmt.Sprintf("add chain %s %s", table, o.name)
	}
	return fmt.Sprintf("add chain %s %s { %s }", table, o.name, o.hook)
}

func (o addChain) queue(b *batch) error {
	c := b.chain(o.name)
	if h := o.hook; h != nil {
		point := nftables.ChainHook(slices.Index(hookPoints(), h.Point))
		policy := nftables.ChainPolicyAccept
		if h.Drop {
			policy = nftables.ChainPolicyDrop
		}
		c.Type, c.Hooknum, c.Policy = nftables.ChainType(h.Type), &point, &policy
		c.Priority = nftables.ChainPriorityRef(nftables.ChainPriority(h.Priority))
	}
	b.conn.AddChain(c)
	return nil
}

// flushChain deletes a chain's rules.
type flushChain struct{ name, why string }

func (o flushChain) text(table string) string {
	return fmt.Sprintf("flush chain %s %s # %s", table, o.name, o.why)
}

func (o flushChain) queue(b *batch) error {
	b.conn.FlushChain(b.chain(o.name))
	return nil
}

type deleteChain struct{ name string }

func (o deleteChain) text(table string) string {
	return fmt.Sprintf("delete chain %s %s", table, o.name)
}

func (o deleteChain) queue(b *batch) error {
	b.conn.DelChain(b.chain(o.name))
	return nil
}

// addRule adds a rule at the end of a chain.
type addRule struct {
	chain string
	rule  Rule
}

func (o addRule) text(table string) string {
	return fmt.Sprintf("add rule %s %s %s", table, o.chain, o.rule)
}

func (o addRule) queue(b *batch) error {
	var code []expr.Any
	for _, s := range o.rule.steps() {
		lookup, ok := s.code.(*expr.Lookup)
		if !ok || lookup.SetName != "" {
			code = append(code, s.code)
			continue
		}
		set, err := b.addAnonymous(s.members)
		if err != nil {
			return err
		}
		code = append(code, &expr.Lookup{SourceRegister: lookup.SourceRegister, SetName: set.Name, SetID: set.ID})
	}
	b.conn.AddRule(&nftables.Rule{
		Table: b.table, Chain: b.chain(o.chain), Exprs: code, UserData: o.rule.userData(),
	})
	return nil
}

// addAnonymous adds a set that lives and dies with the rule that looks it up.
func (b *batch) addAnonymous(members []byte) (*nftables.Set, error) {
	s := &nftables.Set{
		Table: b.table, ID: b.nextID(), Name: "__set%d", // the kernel puts a number for %d
		Anonymous: true, Constant: true, KeyType: nftables.TypeICMPType,
	}
	elements := make([]nftables.SetElement, len(members))
	for i, m := range members {
		elements[i] = nftables.SetElement{Key: []byte{m}}
	}
	return s, b.conn.AddSet(s, elements)
}
