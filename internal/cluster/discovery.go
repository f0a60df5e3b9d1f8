package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
)

// Overrides replace what is discovered. A nil slice is discovered.
type Overrides struct {
	PodCIDRs     []netip.Prefix
	ServiceCIDRs []netip.Prefix
	NodeNetworks []netip.Prefix
	// FlagPrefix comes before the names of flags in hints: "" or "remote-".
	FlagPrefix string
}

// Discovery is what is known of the addresses of a cluster. IPv4 only.
type Discovery struct {
	PodCIDRs     Ranges
	ServiceCIDRs Ranges
	NodeNetworks Ranges
	Nodes        []Node // sorted by name; those that can run the node helper
	CNI          string // such as "flannel"; "" if it is not known
	// ServiceCIDRAPI says whether the cluster has objects of kind ServiceCIDR.
	ServiceCIDRAPI bool
	// AdmissionPolicies says whether the cluster has ValidatingAdmissionPolicies.
	AdmissionPolicies bool
	Notes             []string // what was skipped or could not be read
	Warnings          []Warning
}

// Ranges are address ranges and where they are known from.
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
	// Breaks: one of the two does not work beside the other as configured.
	Breaks bool
}

// MissingError says that something could not be discovered, or contradicts what is seen.
type MissingError struct {
	Context string
	What    string // such as "pod CIDR"
	Cause   string
	Flag    string // that sets it instead, with dashes
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("discover %s of cluster %q: %s", e.What, e.Context, e.Cause)
}

// Hint names the flag.
func (e *MissingError) Hint() string { return "set it with " + e.Flag }

// Discover reads the addresses of the cluster from the sources that real clusters have. What cannot be found is a
// *MissingError that names the flag to use.
func Discover(ctx context.Context, c *Cluster, o Overrides) (Discovery, error) {
	inv, err := takeInventory(ctx, c)
	if err != nil {
		return Discovery{}, err
	}
	return inv.evaluate(c.Context, o)
}

// evaluate draws the conclusions. It does no I/O.
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
		CNI: inv.cni(), ServiceCIDRAPI: inv.serviceCIDRAPI, AdmissionPolicies: inv.policies,
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

// wanted are ranges that are looked for.
type wanted struct {
	what, flag string                      // the flag sets them instead
	given      []netip.Prefix              // with the flag; nil: none
	stray      func([]netip.Prefix) string // names what is seen outside the ranges; "": nothing is
	effect     string                      // on that, of ranges that are given all the same
	sources    []func() Ranges             // the best first
	unknown    string                      // the cause where no source has any
}

// ranges returns the ranges of the flag, else those of the first source that nothing contradicts.
func (q *question) ranges(w wanted) (Ranges, error) {
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

// parse reads prefixes as configurations write them, separated by commas or blanks. IPv6 ranges, and words that are no
// prefixes, are skipped with a note.
func (q *question) parse(source string, texts ...string) []netip.Prefix {
	prefixes, notes := parsePrefixes(texts)
	for _, note := range notes {
		q.note("%s: %s", source, note)
	}
	return prefixes
}

// parsePrefixes reads the IPv4 prefixes among texts, merged. skipped names the other words, with the reason.
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
