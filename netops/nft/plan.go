package nft

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// Plan is the difference between two tables, applied in one transaction. The zero value does nothing.
type Plan struct {
	table Table // only its identity
	ops   []op
	err   error
}

// op is one command of a transaction, in both forms.
type op struct {
	// verb and rest are the command in the language of nft(8), before and after the table.
	verb, rest string
	queue      func(b *batch) // adds the command to the transaction
}

// text returns the command for a table's identity.
func (o op) text(table string) string { return strings.TrimRight(o.verb+" "+table+" "+o.rest, " ") }

// Empty reports whether the plan has no commands.
func (p Plan) Empty() bool { return len(p.ops) == 0 && p.err == nil }

// Table returns the identity of the table in the language of nft(8): family and name.
func (p Plan) Table() string { return p.table.id() }

// Err returns the reason for which the desired table is invalid. Apply returns the same error and does nothing.
func (p Plan) Err() error { return p.err }

// String returns the transaction in the input language of nft(8), one command per line.
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
	// anonymous counts the anonymous sets: within a transaction they are identified by number.
	anonymous uint32
	err       error // of a command that could not be written
}

func (b *batch) set(s Set) *nftables.Set {
	dynamic := s.Senders > 0
	set := &nftables.Set{Table: b.table, Name: s.Name, Interval: !s.Hosts && !dynamic, KeyType: nftables.TypeIPAddr}
	if s.Ports {
		set.KeyType = flowType()
	}
	if dynamic {
		set.Dynamic, set.HasTimeout, set.Timeout, set.Size = true, true, s.Timeout, s.Senders
	}
	return set
}

// flowType is the type of an address with a port.
func flowType() nftables.SetDatatype {
	t, err := nftables.ConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)
	if err != nil {
		panic(err) // both types are in the library
	}
	return t
}

func (b *batch) chain(name string) *nftables.Chain {
	return &nftables.Chain{Table: b.table, Name: name}
}

// nextID returns a set's number, never 0: for 0 google/nftables chooses a number itself.
func (b *batch) nextID() uint32 {
	b.anonymous++
	return b.anonymous
}

// addSet adds a set without elements.
func addSet(s Set) op {
	options := ""
	for _, o := range s.options() {
		options += " " + o + ";"
	}
	return op{verb: "add set", rest: fmt.Sprintf("%s { type %s;%s }", s.Name, s.keyText(), options), queue: func(b *batch) {
		set := b.set(s)
		set.ID = b.nextID()
		b.err = b.conn.AddSet(set, nil)
	}}
}

func deleteSet(name string) op {
	return op{verb: "delete set", rest: name, queue: func(b *batch) { b.conn.DelSet(b.set(Set{Name: name})) }}
}

// elementsPerMessage keeps the list of elements below the 65535 bytes of a netlink attribute: a prefix is two elements,
// the first of 20 bytes and the second, with its flag, of 28.
const elementsPerMessage = 1000

// changeElements adds elements to a set, or deletes them.
func changeElements(verb string, send func(*nftables.Conn, *nftables.Set, []nftables.SetElement) error, s Set, prefixes []netip.Prefix) op {
	return op{verb: verb, rest: fmt.Sprintf("%s { %s }", s.Name, prefixTexts(prefixes, ", ")), queue: func(b *batch) {
		for part := range slices.Chunk(prefixes, elementsPerMessage) {
			b.err = errors.Join(b.err, send(b.conn, b.set(s), s.encode(part)))
		}
	}}
}

// addChain adds a chain without rules, or changes the policy of an existing one.
func addChain(name string, hook *Hook) op {
	rest := name
	if hook != nil {
		rest = fmt.Sprintf("%s { %s }", name, hook)
	}
	return op{verb: "add chain", rest: rest, queue: func(b *batch) {
		c := b.chain(name)
		if hook != nil {
			point := nftables.ChainHook(slices.Index(hookPoints, hook.Point))
			policy := nftables.ChainPolicyAccept
			if hook.Drop {
				policy = nftables.ChainPolicyDrop
			}
			c.Type, c.Hooknum, c.Policy = nftables.ChainType(hook.Type), &point, &policy
			c.Priority = nftables.ChainPriorityRef(nftables.ChainPriority(hook.Priority))
		}
		b.conn.AddChain(c)
	}}
}

// flushChain deletes a chain's rules.
func flushChain(name, why string) op {
	return op{verb: "flush chain", rest: name + " # " + why, queue: func(b *batch) { b.conn.FlushChain(b.chain(name)) }}
}

func deleteChain(name string) op {
	return op{verb: "delete chain", rest: name, queue: func(b *batch) { b.conn.DelChain(b.chain(name)) }}
}

// addRule adds a rule at the end of a chain.
func addRule(chain string, r Rule) op {
	return op{verb: "add rule", rest: fmt.Sprintf("%s %s", chain, r), queue: func(b *batch) {
		var code []expr.Any
		for _, e := range r.explicit() {
			code = append(code, e.code...)
			if e.members != nil { // the last expression is its lookup
				set := b.addAnonymous(e.members)
				code[len(code)-1] = &expr.Lookup{SourceRegister: matchReg, SetName: set.Name, SetID: set.ID}
			}
		}
		b.conn.AddRule(&nftables.Rule{Table: b.table, Chain: b.chain(chain), Exprs: code})
	}}
}

// addAnonymous adds a set that is deleted with the rule that uses it.
func (b *batch) addAnonymous(members []byte) *nftables.Set {
	s := &nftables.Set{
		Table: b.table, ID: b.nextID(), Name: "__set%d", // the kernel replaces %d by a number
		Anonymous: true, Constant: true, KeyType: nftables.TypeICMPType,
	}
	elements := make([]nftables.SetElement, len(members))
	for i, m := range members {
		elements[i] = nftables.SetElement{Key: []byte{m}}
	}
	b.err = errors.Join(b.err, b.conn.AddSet(s, elements))
	return s
}
