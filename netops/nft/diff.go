package nft

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/google/nftables"
)

// Diff returns what makes of the observed table the wanted one, which has the same name. A want without a name removes
// the table. What is added goes in the order of want, what is removed by name.
//
// Chains and sets that are as wanted are not touched: their counters go on. A chain whose rules differ keeps
// its place at the hook and gets all its rules anew. A packet sees that as one change, chains reached by a jump
// included: nft_do_chain of nf_tables_core.c decides once, where a packet comes from a hook, between the old
// rules and the new. The table is never replaced as a whole, because nf_tables_api.c registers new hooks before
// and unregisters old ones after the moment at which rules change: for some microseconds there are both, one of
// them without rules, and a packet on its way from one to the other can meet none. So it is still for a chain
// whose type, hook or priority differ, which has to be made anew.
func Diff(have, want Table) Plan {
	plan := Plan{table: Table{Family: want.Family, Name: want.Name}}
	switch {
	case want.Name == "" && have.Name == "":
		return plan
	case want.Name == "":
		plan.table.Family, plan.table.Name = have.Family, have.Name
		plan.ops = []op{deleteTable()}
		return plan
	case reflect.DeepEqual(have, want): // as of two wanted states; an observed table is written in another way
		return plan
	}
	if err := want.validate(); err != nil {
		return Plan{table: plan.table, err: err}
	}
	if have.Name == "" {
		plan.ops = append(plan.ops, createTable())
	}
	if have.Dormant {
		plan.ops = append(plan.ops, wakeTable())
	}
	sets := diffSets(have.Sets, want.Sets)
	chains := diffChains(have.Chains, want.Chains, sets.remade)
	for _, ops := range [][]op{
		chains.flush, sets.remove, chains.remove, sets.add, chains.add, chains.fill,
	} {
		plan.ops = append(plan.ops, ops...)
	}
	return plan
}

// setChanges are the steps of a transaction that concern sets.
type setChanges struct {
	remove, add []op
	// remade are the sets that are deleted and added: the rules that look them up have to go in between.
	remade []string
}

func diffSets(have, want []Set) setChanges {
	var c setChanges
	old, gone := compareNames(have, want, func(s Set) string { return s.Name })
	for _, name := range gone {
		c.remove = append(c.remove, deleteSet(name))
	}
	for _, w := range want {
		h, there := old[w.Name]
		if there && !h.alike(w) {
			c.remade = append(c.remade, w.Name)
			c.remove = append(c.remove, deleteSet(w.Name))
			there = false
		}
		if !there {
			c.add, h.Elements = append(c.add, addSet(w)), nil
		}
		if gone := without(h.Elements, w.Elements); len(gone) > 0 {
			c.add = append(c.add, changeElements("delete element", (*nftables.Conn).SetDeleteElements, w, gone))
		}
		if added := without(w.Elements, h.Elements); len(added) > 0 {
			c.add = append(c.add, changeElements("add element", (*nftables.Conn).SetAddElements, w, added))
		}
	}
	return c
}

// alike reports whether two sets differ in elements alone.
func (s Set) alike(o Set) bool {
	s.Elements, o.Elements = nil, nil
	return reflect.DeepEqual(s, o)
}

// compareNames returns what there is by name, and which of the names are not wanted, sorted.
func compareNames[T any](have, want []T, name func(T) string) (old map[string]T, gone []string) {
	old = make(map[string]T, len(have))
	for _, h := range have {
		old[name(h)] = h
		if !slices.ContainsFunc(want, func(w T) bool { return name(w) == name(h) }) {
			gone = append(gone, name(h))
		}
	}
	slices.Sort(gone)
	return old, gone
}

// without returns the prefixes of a that are not in b, which is sorted.
func without(a, b []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(a), func(p netip.Prefix) bool {
		_, found := slices.BinarySearchFunc(b, p, netip.Prefix.Compare)
		return found
	})
}

// chainChanges are the steps of a transaction that concern chains, in the order in which they go.
type chainChanges struct{ flush, remove, add, fill []op }

func diffChains(have, want []Chain, remade []string) chainChanges {
	var c chainChanges
	old, gone := compareNames(have, want, func(c Chain) string { return c.Name })
	for _, name := range gone {
		c.flush = append(c.flush, flushChain(name, "not wanted"))
		c.remove = append(c.remove, deleteChain(name))
	}
	for _, w := range want {
		h, there := old[w.Name]
		why := differs(h.Rules, w.Rules, remade)
		moved := there && !samePlace(h.Hook, w.Hook)
		if moved {
			why = "other hook"
			c.remove = append(c.remove, deleteChain(w.Name))
		}
		if there && why != "" {
			c.flush = append(c.flush, flushChain(w.Name, why))
		}
		if !there || moved || w.Hook != nil && h.Hook.Drop != w.Hook.Drop {
			c.add = append(c.add, addChain(w.Name, w.Hook))
		}
		if why != "" {
			for _, r := range w.Rules {
				c.fill = append(c.fill, addRule(w.Name, r))
			}
		}
	}
	return c
}

// samePlace reports whether both hooks differ in nothing but the policy, which can be changed in place.
func samePlace(a, b *Hook) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && a.Point == b.Point && a.Priority == b.Priority
}

// differs says why a chain has to be filled anew, or "".
func differs(have, want []Rule, remade []string) string {
	for i := range min(len(have), len(want)) {
		if !have[i].Equal(want[i]) {
			return fmt.Sprintf("rule %d differs", i+1)
		}
	}
	if len(have) != len(want) {
		return fmt.Sprintf("rules: %d, wanted %d", len(have), len(want))
	}
	for _, e := range slices.Concat(want...) {
		if slices.Contains(remade, e.set) {
			return "set " + e.set + " is made anew"
		}
	}
	return ""
}
