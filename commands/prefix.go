package commands

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"
)

// prefix is the value of a flag that takes one IPv4 range.
type prefix struct{ value *netip.Prefix }

// prefixes is the value of a flag that takes IPv4 ranges, separated by commas or by repeating the flag. The
// first use replaces the default.
type prefixes struct {
	value *[]netip.Prefix
	set   *bool
}

var (
	_ pflag.Value = prefix{}
	_ pflag.Value = prefixes{}
)

func newPrefixes(value *[]netip.Prefix) prefixes { return prefixes{value, new(bool)} }

func (p prefix) String() string {
	if p.value == nil || !p.value.IsValid() {
		return ""
	}
	return p.value.String()
}

// Set parses a range.
func (p prefix) Set(text string) (err error) {
	*p.value, err = parsePrefix(text)
	return err
}

// Type is shown in help as the flag's argument.
func (prefix) Type() string { return "CIDR" }

func (p prefixes) String() string {
	if p.value == nil {
		return ""
	}
	texts := make([]string, len(*p.value))
	for i, v := range *p.value {
		texts[i] = v.String()
	}
	return strings.Join(texts, ",")
}

// Set parses ranges and adds them to those of earlier uses.
func (p prefixes) Set(text string) error {
	var parsed []netip.Prefix
	for _, field := range strings.Split(text, ",") {
		v, err := parsePrefix(strings.TrimSpace(field))
		if err != nil {
			return err
		}
		parsed = append(parsed, v)
	}
	if *p.set {
		parsed = append(*p.value, parsed...)
	}
	*p.value, *p.set = parsed, true
	return nil
}

// Type is shown in help as the flag's argument.
func (prefixes) Type() string { return "CIDR,..." }

func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%q is not a range such as 10.244.0.0/16", text)
	case !p.Addr().Is4():
		return netip.Prefix{}, errors.New("only IPv4 ranges are supported")
	case p != p.Masked():
		return netip.Prefix{}, fmt.Errorf("%s has host bits, the range is %s", p, p.Masked())
	}
	return p, nil
}
