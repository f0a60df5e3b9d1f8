package nft

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// validate tells what the kernel would reject, or read otherwise than it is meant.
func (t Table) validate() error {
	var errs []error
	report := func(kind, name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", kind, name, err))
		}
	}
	report("table", t.Name, checkName(t.Name))
	if t.Dormant {
		report("table", t.Name, errors.New("dormant, which is only for observed tables"))
	}
	if t.Family == Inet || t.Family == IP6 && len(t.Sets) > 0 {
		report("table", t.Name, fmt.Errorf("family %s with %d sets: want ip, or ip6 without sets", t.Family, len(t.Sets)))
	}
	for i, s := range t.Sets {
		report("set", s.Name, s.validate())
		if slices.ContainsFunc(t.Sets[:i], func(o Set) bool { return o.Name == s.Name }) {
			report("set", s.Name, errors.New("given twice"))
		}
	}
	for i, c := range t.Chains {
		report("chain", c.Name, t.validateChain(c))
		if slices.ContainsFunc(t.Chains[:i], func(o Chain) bool { return o.Name == c.Name }) {
			report("chain", c.Name, errors.New("given twice"))
		}
	}
	return errors.Join(errs...)
}

func (s Set) validate() error {
	if err := checkName(s.Name); err != nil {
		return err
	}
	if s.Foreign != "" {
		return fmt.Errorf("%s: only for observed sets", s.Foreign)
	}
	for i, p := range s.Elements {
		if err := checkPrefix(p); err != nil {
			return err
		}
		if s.Hosts && !p.IsSingleIP() {
			return fmt.Errorf("%s is not a single address", p)
		}
		if p != p.Masked() {
			return fmt.Errorf("%s has host bits", p)
		}
		if i > 0 && last(s.Elements[i-1]) >= first(p) {
			return fmt.Errorf("%s does not follow %s", p, s.Elements[i-1])
		}
	}
	return nil
}

func (t Table) validateChain(c Chain) error {
	if err := checkName(c.Name); err != nil {
		return err
	}
	if c.Hook != nil {
		if !slices.Contains(hookPoints(), c.Hook.Point) {
			return fmt.Errorf("no hook %q", c.Hook.Point)
		}
		if !slices.Contains([]string{"filter", "nat", "route"}, c.Hook.Type) {
			return fmt.Errorf("no chain type %q", c.Hook.Type)
		}
	}
	for i, r := range c.Rules {
		err := r.validate()
		if err == nil {
			err = t.validateNames(r)
		}
		if err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return nil
}

// validateNames checks that the sets and chains of which a rule speaks are in the table.
func (t Table) validateNames(r Rule) error {
	for _, e := range r {
		set := func(s Set) bool { return s.Name == e.set }
		chain := func(c Chain) bool { return c.Name == e.chain && c.Hook == nil }
		switch {
		case e.set != "" && !slices.ContainsFunc(t.Sets, set):
			return fmt.Errorf("%s: no such set", e.text)
		case e.chain != "" && !slices.ContainsFunc(t.Chains, chain):
			return fmt.Errorf("%s: no such chain without a hook", e.text)
		}
	}
	return nil
}

// checkName accepts what nft(8) reads as an identifier and the kernel stores. A word that nft(8) gives a
// meaning, such as "all", is accepted too, although a text with such a name cannot be read back.
func checkName(name string) error {
	letter := func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
	ok := name != "" && len(name) <= 128 && letter(name[0])
	for i := 1; ok && i < len(name); i++ {
		c := name[i]
		ok = letter(c) || c >= '0' && c <= '9' || strings.IndexByte("_-.", c) >= 0
	}
	if !ok {
		return errors.New("not a name: a letter, then letters, digits, '_', '-', '.'")
	}
	return nil
}
