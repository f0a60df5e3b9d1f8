package nft

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// validate rejects tables that the kernel would reject or interpret differently.
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
	given := make(map[string]bool)
	once := func(kind, name string, err error) {
		if err == nil && given[kind+name] {
			err = errors.New("given twice")
		}
		given[kind+name] = true
		report(kind, name, err)
	}
	for _, s := range t.Sets {
		once("set", s.Name, s.validate())
	}
	for _, c := range t.Chains {
		once("chain", c.Name, t.validateChain(c))
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
	if err := s.validateSenders(); err != nil {
		return err
	}
	for i, p := range s.Elements {
		err := checkPrefix(p)
		switch {
		case err != nil:
			return err
		case s.Hosts && !p.IsSingleIP():
			return fmt.Errorf("%s is not a single address", p)
		case p != p.Masked():
			return fmt.Errorf("%s has host bits", p)
		case i > 0 && last(s.Elements[i-1]) >= first(p):
			return fmt.Errorf("%s does not follow %s", p, s.Elements[i-1])
		}
	}
	return nil
}

func (s Set) validateSenders() error {
	switch {
	case s.Senders == 0 && (s.Ports || s.Timeout != 0):
		return errors.New("only sets of senders have ports and a timeout")
	case s.Senders == 0:
		return nil
	case s.Hosts || len(s.Elements) > 0:
		return errors.New("a set of senders is filled by the kernel alone")
	case s.Timeout < time.Minute || s.Timeout%time.Minute != 0 || s.Timeout >= time.Hour:
		return fmt.Errorf("timeout %s: want minutes, less than an hour", s.Timeout)
	}
	return nil
}

func (t Table) validateChain(c Chain) error {
	if err := checkName(c.Name); err != nil {
		return err
	}
	if c.Hook != nil && !slices.Contains(hookPoints, c.Hook.Point) {
		return fmt.Errorf("no hook %q", c.Hook.Point)
	}
	if c.Hook != nil && !slices.Contains([]string{"filter", "nat", "route"}, c.Hook.Type) {
		return fmt.Errorf("no chain type %q", c.Hook.Type)
	}
	for i, r := range c.Rules {
		if err := errors.Join(r.validate(), t.validateNames(r)); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return nil
}

// validateNames verifies that the sets and chains of a rule are in the table.
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

var identifier = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]{0,127}$`)

// checkName accepts identifiers of nft(8) that the kernel can store. It also accepts keywords of nft(8), such as "all",
// although a text with such a name cannot be parsed.
func checkName(name string) error {
	if !identifier.MatchString(name) {
		return errors.New("not a name: a letter, then letters, digits, '_', '-', '.'")
	}
	return nil
}
