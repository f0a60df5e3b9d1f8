package nft

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/google/nftables"
)

// Diff returns the changes from the observed table to the desired one, which has the same name. A want without a name
// removes the table. Objects are added in the order of want and removed in the order of their names.
//
// Chains and sets that are as desired are not changed, so that their counters continue. A chain with different rules
// remains at its hook and gets all its rules again. For packets that is one atomic change, also for chains reached by a
// jump: nft_do_chain of nf_tables_core.c selects the old or the new rules once, when a packet enters from a hook. The
// table is never replaced as a whole, because nf_tables_api.c registers new hooks before, and unregisters old ones
// after the change of the rules: for some microseconds both exist, one of them without rules, and a packet that passes
// from one to the other can meet none. This still applies to a chain whose type, hook or priority differ, which has to
// be recreated.
func Diff(have, want Table) Plan {
	plan := Plan{table: Table{Family: want.Family, Name: want.Name}}
	switch {
	case want.Name == "" && have.Name == "":
		return plan
	case want.Name == "":
		plan.table.Family, plan.table.Name = have.Family, have.Name
		plan.ops = []op{{verb: "delete table", queue: func(b *batch) { b.conn.DelTable(b.table) }}}
		return plan
	case reflect.DeepEqual(have, want): // two desired states; observed tables have another representation
		return plan
	}
	if err := want.validate(); err != nil {
		return Plan{table: plan.table, err: err}
	}
	if have.Name == "" { // fails, and the transaction with it, if the table exists
		plan.ops = append(plan.ops, op{verb: "create table", queue: func(b *batch) { b.conn.CreateTable(b.table) }})
	}
	if have.Dormant { // clears the flags
		plan.ops = append(plan.ops, op{verb: "add table", queue: func(b *batch) { b.conn.AddTable(b.table) }})
	}
	sets := diffSets(have.Sets, want.Sets)
	chains := diffChains(have.Chains, want.Chains, sets.recreated)
	for _, ops := range [][]op{
		chains.flush, sets.remove, chains.remove, sets.add, chains.add, chains.fill,
	} {
		plan.ops = append(plan.ops, ops...)
	}
	return plan
}

// setChanges are the changes of sets in a transaction.
type setChanges struct {
	remove, add []op
	// recreated are the sets that are deleted and added. The rules that use them must be deleted in between.
	recreated []string
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
			c.recreated = append(c.recreated, w.Name)
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

// alike reports whether two sets differ only in their elements.
func (s Set) alike(o Set) bool {
	s.Elements, o.Elements = nil, nil
	return reflect.DeepEqual(s, o)
}

// compareNames returns the existing objects by name, and the names that are not desired, sorted.
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

// chainChanges are the changes of chains in a transaction, in order of execution.
type chainChanges struct{ flush, remove, add, fill []op }

func diffChains(have, want []Chain, recreated []string) chainChanges {
	var c chainChanges
	old, gone := compareNames(have, want, func(c Chain) string { return c.Name })
	for _, name := range gone {
		c.flush = append(c.flush, flushChain(name, "not wanted"))
		c.remove = append(c.remove, deleteChain(name))
	}
	for _, w := range want {
		h, there := old[w.Name]
		why := differs(h.Rules, w.Rules, recreated)
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

// samePlace reports whether the hooks differ only in the policy, which can be changed in place.
func samePlace(a, b *Hook) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && a.Point == b.Point && a.Priority == b.Priority
}

// differs returns the reason for which a chain must be refilled, or "".
func differs(have, want []Rule, recreated []string) string {
	for i := range min(len(have), len(want)) {
		if !have[i].Equal(want[i]) {
			return fmt.Sprintf("rule %d differs", i+1)
		}
	}
	if len(have) != len(want) {
		return fmt.Sprintf("rules: %d, wanted %d", len(have), len(want))
	}
	for _, e := range slices.Concat(want...) {
		if slices.Contains(recreated, e.set) {
			return "set " + e.set + " is made anew"
		}
	}
	return ""
}
