package nft

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Observe reads a table: the zero Table if there is none of that name. What this package does not make is in
// the result as well, so that Diff finds it; stateful objects and flowtables alone are not looked for.
//
// The kernel lists the chains of all tables together. So as not to read thousands of foreign ones for nothing, a
// table is read again only after a transaction, by whomever: anything else than its counters is as it was.
func (c *Conn) Observe(family Family, table string) (Table, error) {
	key := Table{Family: family, Name: table}.id()
	last := c.last[key]
	t, err := again(c, &last, func() (Table, error) { return c.readTable(family, table) })
	if err != nil {
		return Table{}, fmt.Errorf("read table %s: %w", key, err)
	}
	c.last[key] = last
	return t.clone(), nil
}

// reading is what was read last, and at which generation. The zero value: nothing.
type reading[T any] struct {
	generation uint32
	known      bool
	value      T
}

// again returns what was read last, or reads anew after a transaction, by whomever.
func again[T any](c *Conn, last *reading[T], read func() (T, error)) (T, error) {
	if last.known && c.current(last.generation) {
		return last.value, nil
	}
	var value T
	generation, err := c.consistent(func() (err error) {
		value, err = read()
		return err
	})
	if err != nil {
		return value, err
	}
	*last = reading[T]{generation, true, value}
	return value, nil
}

// current reports whether there was no transaction since the one that made a generation.
func (c *Conn) current(generation uint32) bool {
	if c.settle() != nil {
		return false
	}
	now, err := c.generation()
	return err == nil && now == generation
}

// clone copies what a caller may sort or append to.
func (t Table) clone() Table {
	t.Sets, t.Chains = slices.Clone(t.Sets), slices.Clone(t.Chains)
	return t
}

// Has reports whether there is a table of that name.
func (c *Conn) Has(family Family, table string) (bool, error) {
	_, err := c.request(family, unix.NFT_MSG_GETTABLE, 0, attr(unix.NFTA_TABLE_NAME, table))
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask for table %s: %w", table, err)
	}
	return true, nil
}

func (c *Conn) readTable(family Family, name string) (Table, error) {
	answers, err := c.request(family, unix.NFT_MSG_GETTABLE, 0, attr(unix.NFTA_TABLE_NAME, name))
	if errors.Is(err, unix.ENOENT) {
		return Table{}, nil
	}
	if err != nil {
		return Table{}, err
	}
	t := Table{Family: family, Name: name}
	for _, a := range answers {
		t.Dormant = a.number(unix.NFTA_TABLE_FLAGS)&unix.NFT_TABLE_F_DORMANT != 0
	}
	sets, anonymous, err := c.readSets(family, name)
	if err != nil {
		return Table{}, err
	}
	t.Sets = sets
	t.Chains, err = c.readChains(family, name, anonymous)
	return t, err
}

// attributes are those of one object, by type.
type attributes map[uint16][]byte

func decode(b []byte) (attributes, error) {
	list, err := netlink.UnmarshalAttributes(b)
	if err != nil {
		return nil, err
	}
	a := make(attributes, len(list))
	for _, attr := range list {
		a[attr.Type&attrMask] = attr.Data
	}
	return a, nil
}

// number returns a number, 0 where there is none.
func (a attributes) number(typ uint16) uint32 {
	if b := a[typ]; len(b) == 4 {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// handle returns a rule's number in its table.
func (a attributes) handle() uint64 {
	if b := a[unix.NFTA_RULE_HANDLE]; len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (a attributes) string(typ uint16) string { return cString(a[typ]) }

// readChains returns the chains of the table with their rules, in the order in which they were made.
func (c *Conn) readChains(family Family, table string, anonymous map[string]string) ([]Chain, error) {
	rules, err := c.readRules(family, table, anonymous)
	if err != nil {
		return nil, err
	}
	answers, err := c.request(family, unix.NFT_MSG_GETCHAIN, netlink.Dump, attr(unix.NFTA_CHAIN_TABLE, table))
	if err != nil {
		return nil, err
	}
	var chains []Chain
	for _, a := range answers {
		if a.string(unix.NFTA_CHAIN_TABLE) != table { // the kernel lists those of all tables
			continue
		}
		name := a.string(unix.NFTA_CHAIN_NAME)
		hook, err := readHook(a)
		if err != nil {
			return nil, fmt.Errorf("chain %s: %w", name, err)
		}
		chains = append(chains, Chain{Name: name, Hook: hook, Rules: rules[name]})
	}
	return chains, nil
}

// readHook returns the hook of a chain, nil if it has none.
func readHook(chain attributes) (*Hook, error) {
	nested, ok := chain[unix.NFTA_CHAIN_HOOK]
	if !ok {
		return nil, nil
	}
	a, err := decode(nested)
	if err != nil {
		return nil, err
	}
	h := &Hook{
		Type:     chain.string(unix.NFTA_CHAIN_TYPE),
		Priority: int(int32(a.number(unix.NFTA_HOOK_PRIORITY))),
		Drop:     chain.number(unix.NFTA_CHAIN_POLICY) == uint32(nftables.ChainPolicyDrop),
	}
	if n := a.number(unix.NFTA_HOOK_HOOKNUM); int(n) < len(hookPoints()) {
		h.Point = hookPoints()[n]
	}
	return h, nil
}

// readRules returns the rules of the table by chain.
func (c *Conn) readRules(family Family, table string, anonymous map[string]string) (map[string][]Rule, error) {
	answers, err := c.request(family, unix.NFT_MSG_GETRULE, netlink.Dump, attr(unix.NFTA_RULE_TABLE, table))
	if err != nil {
		return nil, err
	}
	rules := make(map[string][]Rule)
	for _, a := range answers {
		if a.string(unix.NFTA_RULE_TABLE) != table {
			continue
		}
		chain := a.string(unix.NFTA_RULE_CHAIN)
		rule, err := readRule(a, anonymous)
		if err != nil {
			return nil, fmt.Errorf("chain %s: %w", chain, err)
		}
		rules[chain] = append(rules[chain], rule)
	}
	return rules, nil
}

// readRule returns a rule of expressions in canonical form.
func readRule(a attributes, anonymous map[string]string) (Rule, error) {
	elems, err := netlink.UnmarshalAttributes(a[unix.NFTA_RULE_EXPRESSIONS])
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, e := range elems {
		line, err := canonicalElem(e.Data, func(set string) string { return cmp.Or(anonymous[set], set) })
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	if u := a[unix.NFTA_RULE_USERDATA]; len(u) > 0 {
		lines = append(lines, canonicalUserData(u))
	}
	rule := make(Rule, len(lines))
	for i, line := range lines {
		rule[i] = Expr{text: "[" + line + "]", observed: line}
	}
	return rule, nil
}
