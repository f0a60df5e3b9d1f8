//go:build linux

package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"

	"liqonet.io/liqonet/internal/datapath"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/records"
)

// reportedNode is the report of a node.
type reportedNode struct {
	*records.Node            // the same pointer as long as the report is unchanged
	Internal      netip.Addr // by its number
	version       string     // of the Lease with the report; each write of any Lease has a higher one
}

// nodeReports are the reports of the nodes, each decoded once: of the thousands of a large cluster, few change between
// two passes. The zero value has read nothing.
type nodeReports struct {
	internal netip.Prefix             // the cluster's internal CIDR
	known    map[string]decodedReport // by name of the Lease
	nodes    []reportedNode           // in order; views share it, so it is replaced and never changed
	claims   claimants
}

// claimants are how many nodes report a range of pods.
type claimants map[netip.Prefix]int

// add adds a report, or with -1 removes it; nil: none.
func (c claimants) add(n *records.Node, by int) {
	if n == nil {
		return
	}
	for _, p := range datapath.PodsOf(*n) {
		if c[p] += by; c[p] == 0 {
			delete(c, p)
		}
	}
}

// decodedReport is a Lease and the report in it, nil if there is none or it is rejected.
type decodedReport struct {
	lease *coordinationv1.Lease
	node  *records.Node
	err   error
}

// decode decodes a Lease that was rewritten.
func (d decodedReport) decode(lease *coordinationv1.Lease) decodedReport {
	text := lease.Annotations[records.AnnotationNode]
	if d.lease != nil && d.lease.Annotations[records.AnnotationNode] == text && ptr.Equal(d.lease.Spec.HolderIdentity, lease.Spec.HolderIdentity) {
		return decodedReport{lease, d.node, d.err}
	}
	d = decodedReport{lease: lease}
	if text == "" {
		return d
	}
	if n, err := records.DecodeReport(lease.Name, lease.Spec.HolderIdentity, text); err != nil {
		d.err = fmt.Errorf("read Lease %s: %w", lease.Name, err)
	} else {
		// Only liqoctl reads them, and gateways store thousands of reports.
		n.Surroundings, n.Witness = records.Surroundings{}, nil
		d.node = &n
	}
	return d
}

// read decodes changed reports, and returns all reports in order. refused are the errors of reports that are damaged,
// or of another node than the Lease: each affects that node only.
func (r *nodeReports) read(s cache.Store, internal netip.Prefix) (nodes []reportedNode, refused []error) {
	if r.internal != internal {
		*r = nodeReports{internal: internal, known: map[string]decodedReport{}, claims: claimants{}}
	}
	leases, changed := cache.Listed[*coordinationv1.Lease](s), map[string]decodedReport{}
	total := len(r.known)
	for _, lease := range leases {
		d, known := r.known[lease.Name]
		if d.lease != lease {
			d = d.decode(lease)
			changed[lease.Name] = d
		}
		if !known {
			total++
		}
		if d.err != nil {
			refused = append(refused, d.err)
		}
	}
	if total > len(leases) {
		gone := maps.Clone(r.known)
		for _, lease := range leases {
			delete(gone, lease.Name)
		}
		for name := range gone {
			changed[name] = decodedReport{}
		}
	}
	if len(changed) > 0 {
		r.replace(changed)
	}
	return r.nodes, refused
}

// replace applies changes, by name of the Lease; without a Lease: it no longer exists.
func (r *nodeReports) replace(changed map[string]decodedReport) {
	old := make(map[*records.Node]bool, len(changed))
	for name, d := range changed {
		last := r.known[name].node
		old[last] = true
		if last != d.node {
			r.claims.add(last, -1)
			r.claims.add(d.node, 1)
		}
		if r.known[name] = d; d.lease == nil {
			delete(r.known, name)
		}
	}
	r.nodes = slices.DeleteFunc(slices.Clone(r.nodes), func(n reportedNode) bool { return old[n.Node] })
	for _, d := range changed {
		if d.node == nil {
			continue
		}
		n := reportedNode{d.node, records.NodeAddress(r.internal, d.node.Number), d.lease.ResourceVersion}
		at, _ := slices.BinarySearchFunc(r.nodes, n, reportedNode.compare)
		r.nodes = slices.Insert(r.nodes, at, n)
	}
}

// compare returns the order of two reports in a view.
func (n reportedNode) compare(o reportedNode) int {
	return cmp.Or(strings.Compare(n.Name, o.Name), n.Number-o.Number)
}

// latestFirst returns the nodes in order of precedence for pods that several of them claim: a node that died reports
// its pods for as long as its Node object exists, and another node may have one of these addresses by now. The API
// server's resource versions order the writes, independent of the nodes' clocks (comparable since Kubernetes 1.35,
// KEP-5504; those of etcd were before). If they are no numbers, the order stays.
func latestFirst(nodes []reportedNode) []reportedNode {
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b reportedNode) int {
		order, err := resourceversion.CompareResourceVersion(b.version, a.version)
		if err != nil {
			return 0
		}
		return order
	})
	return sorted
}
