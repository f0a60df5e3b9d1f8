// Package parsed has the addresses of tests, parsed from text.
package parsed

import "net/netip"

// Prefixes parses CIDRs.
func Prefixes(texts ...string) []netip.Prefix { return all(texts, netip.MustParsePrefix) }

// Addresses parses addresses.
func Addresses(texts ...string) []netip.Addr { return all(texts, netip.MustParseAddr) }

func all[T any](texts []string, parse func(string) T) []T {
	out := make([]T, len(texts))
	for i, text := range texts {
		out[i] = parse(text)
	}
	return out
}
