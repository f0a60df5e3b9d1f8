package nft

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// Observe reads a table, or returns the zero Table if it does not exist. Foreign objects in the table are included, so
// that Diff finds them, except for stateful objects and flowtables.
//
// The kernel lists the chains of all tables together. To avoid reading thousands of foreign ones, a table is read again
// only after a transaction of any program; without one, only counters change.
func (c *Conn) Observe(family Family, table string) (Table, error) {
	key := Table{Family: family, Name: table}.id()
	t, err := cached(c, c.last, key, func() (Table, error) { return c.readTable(family, table) })
	if err != nil {
		return Table{}, fmt.Errorf("read table %s: %w", key, err)
	}
	t.Sets, t.Chains = slices.Clone(t.Sets), slices.Clone(t.Chains) // callers may sort them or append to them
	return t, nil
}

// reading is the last value that was read, with its generation.
type reading[T any] struct {
	generation uint32
	value      T
}

// cached returns the last value, or reads it again if there was a transaction since.
func cached[T any](c *Conn, last map[string]reading[T], key string, read func() (T, error)) (T, error) {
	if known, ok := last[key]; ok && c.current(known.generation) {
		return known.value, nil
	}
	var value T
	generation, err := c.consistent(func() (err error) {
		value, err = read()
		return err
	})
	if err == nil {
		last[key] = reading[T]{generation, value}
	}
	return value, err
}

// current reports whether there was no transaction after that generation.
func (c *Conn) current(generation uint32) bool {
	if c.settle() != nil {
		return false
	}
	now, err := c.generation()
	return err == nil && now == generation
}

// Has reports whether a table exists.
func (c *Conn) Has(family Family, table string) (bool, error) {
	found, err := c.find(family, table)
	if err != nil {
		return false, fmt.Errorf("ask for table %s: %w", table, err)
	}
	return len(found) > 0, nil
}

// find returns the table if it exists.
func (c *Conn) find(family Family, table string) ([]attributes, error) {
	found, err := c.request(family, unix.NFT_MSG_GETTABLE, 0, attr(unix.NFTA_TABLE_NAME, table))
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	return found, err
}

func (c *Conn) readTable(family Family, name string) (Table, error) {
	found, err := c.find(family, name)
	if err != nil || len(found) == 0 {
		return Table{}, err
	}
	t := Table{Family: family, Name: name, Dormant: found[0].number(unix.NFTA_TABLE_FLAGS)&unix.NFT_TABLE_F_DORMANT != 0}
	sets, anonymous, err := c.readSets(family, name)
	if err != nil {
		return Table{}, err
	}
	t.Sets = sets
	t.Chains, err = c.readChains(family, name, anonymous)
	return t, err
}

// readChains returns the chains of the table with their rules, in order of creation.
func (c *Conn) readChains(family Family, table string, anonymous map[string]string) ([]Chain, error) {
	rules, err := c.rules(family, table, "")
	if err != nil {
		return nil, err
	}
	listed, err := c.conn.ListChainsOfTableFamily(family.number()) // of all tables
	if err != nil {
		return nil, err
	}
	byChain := make(map[string][]Rule)
	for _, r := range rules {
		name := r.string(unix.NFTA_RULE_CHAIN)
		byChain[name] = append(byChain[name], readRule(r, anonymous))
	}
	var chains []Chain
	for _, l := range listed {
		if l.Table.Name == table {
			chains = append(chains, Chain{Name: l.Name, Hook: readHook(l), Rules: byChain[l.Name]})
		}
	}
	return chains, nil
}

// readHook returns the hook of a chain, nil if it has none.
func readHook(chain *nftables.Chain) *Hook {
	if chain.Hooknum == nil {
		return nil
	}
	h := &Hook{
		Type:     string(chain.Type),
		Priority: int(*chain.Priority),
		Drop:     chain.Policy != nil && *chain.Policy == nftables.ChainPolicyDrop,
	}
	if n := int(*chain.Hooknum); n < len(hookPoints) {
		h.Point = hookPoints[n]
	}
	return h
}

// readRule returns a rule with expressions in canonical form.
func readRule(a attributes, anonymous map[string]string) Rule {
	var lines []string
	for _, elem := range a.elements(unix.NFTA_RULE_EXPRESSIONS) {
		lines = append(lines, canonicalElem(elem, func(set string) string { return cmp.Or(anonymous[set], set) }))
	}
	if u := a[unix.NFTA_RULE_USERDATA]; len(u) > 0 { // such as a comment; our rules have none
		lines = append(lines, fmt.Sprintf("userdata %x", u))
	}
	rule := make(Rule, len(lines))
	for i, line := range lines {
		rule[i] = Expr{text: "[" + line + "]", observed: line}
	}
	return rule
}
