package nft

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Diff returns what makes of the observed table the wanted one. A want without a name removes the table. What
// is added goes in the order of want, what is removed by name.
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
		plan.ops = []op{deleteTable(plan.table)}
		return plan
	}
	if err := want.validate(); err != nil {
		return Plan{table: plan.table, err: err}
	}
	if have.Name == "" || have.id() != want.id() {
		if have.Name != "" {
			plan.ops = append(plan.ops, deleteTable(have))
		}
		plan.ops = append(plan.ops, createTable())
		have = plan.table
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
	named := func(sets []Set, name string) int {
		return slices.IndexFunc(sets, func(s Set) bool { return s.Name == name })
	}
	byName := func(a, b Set) int { return cmp.Compare(a.Name, b.Name) }
	for _, h := range slices.SortedFunc(slices.Values(have), byName) {
		if named(want, h.Name) < 0 {
			c.remove = append(c.remove, deleteSet(h.Name))
		}
	}
	for _, w := range want {
		var old []netip.Prefix
		i := named(have, w.Name)
		switch {
		case i < 0:
			c.add = append(c.add, addSet(w.Name, w.Hosts))
		case have[i].Foreign != "" || have[i].Hosts != w.Hosts:
			c.remade = append(c.remade, w.Name)
			c.remove = append(c.remove, deleteSet(w.Name))
			c.add = append(c.add, addSet(w.Name, w.Hosts))
		default:
			old = have[i].Elements
		}
		if gone := without(old, w.Elements); len(gone) > 0 {
			c.add = append(c.add, deleteElements(w, gone))
		}
		if added := without(w.Elements, old); len(added) > 0 {
			c.add = append(c.add, addElements(w, added))
		}
	}
	return c
}

// without returns the prefixes of a that are not in b. Both are sorted.
func without(a, b []netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range a {
		for len(b) > 0 && b[0].Compare(p) < 0 {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != p {
			out = append(out, p)
		}
	}
	return out
}

// chainChanges are the steps of a transaction that concern chains, in the order in which they go.
type chainChanges struct{ flush, remove, add, fill []op }

func diffChains(have, want []Chain, remade []string) chainChanges {
	var c chainChanges
	byName := func(a, b Chain) int { return cmp.Compare(a.Name, b.Name) }
	for _, h := range slices.SortedFunc(slices.Values(have), byName) {
		if !slices.ContainsFunc(want, func(w Chain) bool { return w.Name == h.Name }) {
			c.flush = append(c.flush, flushChain(h.Name, "not wanted"))
			c.remove = append(c.remove, deleteChain(h.Name))
		}
	}
	for _, w := range want {
		i := slices.IndexFunc(have, func(h Chain) bool { return h.Name == w.Name })
		if i < 0 {
			c.add = append(c.add, addChain(w.Name, w.Hook))
			c.fillChain(w)
			continue
		}
		c.changeChain(have[i], w, remade)
	}
	return c
}

func (c *chainChanges) changeChain(have, want Chain, remade []string) {
	why := differs(have.Rules, want.Rules, remade)
	moved := !samePlace(have.Hook, want.Hook)
	if moved {
		why = "other hook"
	}
	if why != "" {
		c.flush = append(c.flush, flushChain(want.Name, why))
	}
	if moved {
		c.remove = append(c.remove, deleteChain(want.Name))
	}
	if moved || want.Hook != nil && have.Hook.Drop != want.Hook.Drop {
		c.add = append(c.add, addChain(want.Name, want.Hook))
	}
	if why != "" {
		c.fillChain(want)
	}
}

func (c *chainChanges) fillChain(w Chain) {
	for _, r := range w.Rules {
		c.fill = append(c.fill, addRule(w.Name, r))
	}
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
	for i, w := range want {
		if i >= len(have) {
			break
		}
		if !have[i].Equal(w) {
			return fmt.Sprintf("rule %d differs", i+1)
		}
	}
	if len(have) != len(want) {
		return fmt.Sprintf("rules: %d, wanted %d", len(have), len(want))
	}
	for _, r := range want {
		for _, e := range r {
			if e.set != "" && slices.Contains(remade, e.set) {
				return "set " + e.set + " is made anew"
			}
		}
	}
	return ""
}
