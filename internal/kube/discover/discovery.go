// Package discover finds out what liqonet needs to know of a cluster: its CIDRs, node networks, network plugin and the
// addresses of its API servers, from the objects that the distribution has made. It writes nothing.
package discover

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/kube"
)

// Overrides replace discovered ranges. A nil slice is discovered.
type Overrides struct {
	PodCIDRs     []netip.Prefix
	ServiceCIDRs []netip.Prefix
	NodeNetworks []netip.Prefix
	// FlagPrefix is the prefix of flag names in hints: "" or "remote-".
	FlagPrefix string
}

// Discovery describes the addresses of a cluster. IPv4 only.
type Discovery struct {
	PodCIDRs     Ranges
	ServiceCIDRs Ranges
	NodeNetworks Ranges
	Nodes        []Node // that can run the node helper, sorted by name
	CNI          string // such as "flannel"; "" if unknown
	// AdmissionPolicies is set if the cluster's API has kind ValidatingAdmissionPolicy.
	AdmissionPolicies bool
	Notes             []string // what was skipped or could not be read
	Warnings          []Warning
}

// Ranges are address ranges and their source.
type Ranges struct {
	Prefixes []netip.Prefix // masked, sorted
	Source   string         // such as "kubeadm ConfigMap"
}

// Node is a node and its addresses.
type Node struct {
	Name     string
	Ready    bool
	Internal []netip.Addr
	External []netip.Addr
	PodCIDRs []netip.Prefix
}

// Warning is a known incompatibility of a cluster with liqonet, and the remedy.
type Warning struct {
	What string
	Hint string
	// Breaks is set if liqonet or the other component does not work in this configuration.
	Breaks bool
}

// MissingError reports that a value could not be discovered, or contradicts observed addresses.
type MissingError struct {
	Context string
	What    string // such as "pod CIDR"
	Cause   string
	Flag    string // the flag to set it, with dashes
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("discover %s of cluster %q: %s", e.What, e.Context, e.Cause)
}

// Hint suggests the flag.
func (e *MissingError) Hint() string { return "set it with " + e.Flag }

// Read reads the addresses of the cluster from the sources that distributions provide. For a value that it cannot
// find, it returns a *MissingError with the flag to use.
func Read(ctx context.Context, c *kube.Cluster, o Overrides) (Discovery, error) {
	inv, err := readInventory(ctx, c)
	if err != nil {
		return Discovery{}, err
	}
	return inv.evaluate(c.Context, o)
}

// evaluate derives the addresses from the inventory. It does no I/O.
func (inv *inventory) evaluate(context string, o Overrides) (Discovery, error) {
	q := question{inv: inv, context: context, overrides: o, notes: slices.Sorted(slices.Values(inv.unread))}
	q.nodes = q.usableNodes()
	if err := q.checkFamily(); err != nil {
		return Discovery{}, err
	}
	var err error
	if q.services, err = q.serviceCIDRs(); err != nil {
		return Discovery{}, err
	}
	pods, err := q.podCIDRs()
	if err != nil {
		return Discovery{}, err
	}
	networks, err := q.nodeNetworks(pods)
	if err != nil {
		return Discovery{}, err
	}
	return Discovery{
		PodCIDRs: pods, ServiceCIDRs: q.services, NodeNetworks: networks, Nodes: q.nodes,
		CNI: inv.cni(), AdmissionPolicies: inv.policies,
		Notes: q.notes, Warnings: inv.warnings(),
	}, nil
}

// question is an evaluation in progress: the inventory, the overrides, and the results so far.
type question struct {
	inv       *inventory
	context   string
	overrides Overrides
	nodes     []Node
	services  Ranges
	notes     []string
}

func (q *question) note(format string, args ...any) {
	q.notes = append(q.notes, fmt.Sprintf(format, args...))
}

// rangeQuery describes ranges to discover.
type rangeQuery struct {
	what, flag string                      // name of the value, and of its flag
	given      []netip.Prefix              // set by the flag; nil: not set
	stray      func([]netip.Prefix) string // returns an observed address outside the ranges; "": none
	effect     string                      // of such an address, if the ranges are set by the flag
	sources    []func() Ranges             // in order of preference
	unknown    string                      // the cause if no source has ranges
}

// ranges returns the ranges set by the flag, or those of the first source that observed addresses do not contradict.
func (q *question) ranges(w rangeQuery) (Ranges, error) {
	flag := "--" + q.overrides.FlagPrefix + w.flag
	if w.given != nil {
		r := Ranges{Prefixes: cidr.Merged(w.given), Source: flag}
		if stray := w.stray(r.Prefixes); stray != "" {
			q.note("%s, outside %v%s", stray, r.Prefixes, w.effect)
		}
		return r, nil
	}
	var contradicted []string
	for _, ask := range w.sources {
		r := ask()
		if len(r.Prefixes) == 0 {
			continue
		}
		stray := w.stray(r.Prefixes)
		if stray == "" {
			return r, nil
		}
		contradicted = append(contradicted, fmt.Sprintf("%v (%s), but %s", r.Prefixes, r.Source, stray))
	}
	cause := cmp.Or(strings.Join(contradicted, "; "), w.unknown)
	return Ranges{}, &MissingError{Context: q.context, What: w.what, Cause: cause, Flag: flag}
}

// parse parses prefixes in a configuration, separated by commas or blanks. It skips IPv6 ranges and invalid words, and
// adds a note.
func (q *question) parse(source string, texts ...string) []netip.Prefix {
	prefixes, notes := parsePrefixes(texts)
	for _, note := range notes {
		q.note("%s: %s", source, note)
	}
	return prefixes
}

// parsePrefixes returns the IPv4 prefixes in texts, merged. skipped has the other words with the reason.
func parsePrefixes(texts []string) (prefixes []netip.Prefix, skipped []string) {
	for _, text := range texts {
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\n", r) }) {
			p, err := netip.ParsePrefix(word)
			switch {
			case err != nil:
				skipped = append(skipped, fmt.Sprintf("%q is not an address range", word))
			case !p.Addr().Is4():
				skipped = append(skipped, "skipping "+word+": IPv4 only")
			default:
				prefixes = append(prefixes, p)
			}
		}
	}
	return cidr.Merged(prefixes), skipped
}
