package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
)

// Overrides are what the user told instead of having it discovered. A nil slice is to be discovered.
type Overrides struct {
	PodCIDRs     []netip.Prefix
	ServiceCIDRs []netip.Prefix
	NodeNetworks []netip.Prefix
	// FlagPrefix comes before the names of flags in hints: "" or "remote-".
	FlagPrefix string
}

// Discovery is what a cluster tells of its addresses. IPv4 only.
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
	Notes             []string // what was left out or could not be read
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

// Warning is something in a cluster with which liqonet is known to clash, and the way out.
type Warning struct {
	What string
	Hint string
	// Breaks says that one of the two cannot work beside the other as they are.
	Breaks bool
}

// MissingError says that something could not be discovered, or contradicts what is seen.
type MissingError struct {
	Context string
	What    string // such as "pod CIDR"
	Cause   string
	Flag    string // that tells it instead, with dashes
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("discover %s of cluster %q: %s", e.What, e.Context, e.Cause)
}

// Hint names the flag.
func (e *MissingError) Hint() string { return "tell it with " + e.Flag }

// Discover reads what the cluster tells of its addresses, from the sources that real clusters have. What
// cannot be found is a *MissingError that names the flag to use.
func (c *Cluster) Discover(ctx context.Context, o Overrides) (Discovery, error) {
	inv, err := c.takeInventory(ctx)
	if err != nil {
		return Discovery{}, err
	}
	return inv.evaluate(c.Context, o)
}

// evaluate draws the conclusions. It does no I/O.
func (inv *inventory) evaluate(context string, o Overrides) (Discovery, error) {
	q := question{inv: inv, context: context, overrides: o, notes: slices.Sorted(slices.Values(inv.unread))}
	q.nodes = q.usableNodes()
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

// question is an evaluation on its way: what there is to go by, what the user told, what is concluded so far.
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

// missing is the error for something that the flag must tell.
func (q *question) missing(what, flag, format string, args ...any) error {
	return &MissingError{
		Context: q.context, What: what, Cause: fmt.Sprintf(format, args...),
		Flag: "--" + q.overrides.FlagPrefix + flag,
	}
}

// parse reads prefixes as configurations write them, separated by commas or blanks. IPv6 ranges are left out
// with a note; a word that is no prefix counts as nothing, with a note.
func (q *question) parse(source string, texts ...string) []netip.Prefix {
	prefixes, notes := parsePrefixes(texts)
	for _, note := range notes {
		q.note("%s: %s", source, note)
	}
	return prefixes
}

// parsePrefixes reads the IPv4 prefixes among texts, merged, and tells what it left out.
func parsePrefixes(texts []string) (prefixes []netip.Prefix, skipped []string) {
	for _, text := range texts {
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\n", r) }) {
			p, err := netip.ParsePrefix(word)
			switch {
			case err != nil:
				skipped = append(skipped, fmt.Sprintf("%q is not an address range", word))
			case !p.Addr().Is4():
				skipped = append(skipped, word+" is left out: IPv4 only")
			default:
				prefixes = append(prefixes, p)
			}
		}
	}
	return cidr.Merged(prefixes), skipped
}
