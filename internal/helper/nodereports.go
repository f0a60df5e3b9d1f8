//go:build linux

package helper

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"liqonet.io/liqonet/internal/kernels"
	"liqonet.io/liqonet/internal/records"
)

// reportedNode is what a node reports.
type reportedNode struct {
	*records.Node        // the same one as long as the report is the same
	version       string // of the Lease that bears the report; each write of any Lease has a higher one
}

// nodeReports are what the nodes report, each decoded once. The zero value has read nothing.
type nodeReports struct {
	known  map[string]decodedReport // by name of the Lease
	claims claimants
}

// claimants are how many nodes report a range of pods.
type claimants map[netip.Prefix]int

// add adds a report, or with -1 takes it away; nil: none.
func (c claimants) add(n *records.Node, by int) {
	if n == nil {
		return
	}
	for _, p := range kernels.PodsOf(*n) {
		if c[p] += by; c[p] == 0 {
			delete(c, p)
		}
	}
}

// decodedReport is a report and what it says, nil if it is refused.
type decodedReport struct {
	text, holder string
	node         *records.Node
	err          error
}

// read decodes what is new. refused are the errors of reports that are damaged, or tell of another node: each concerns
// that node alone.
func (r *nodeReports) read(s cache.Store) (nodes []reportedNode, refused []error) {
	before := r.known
	r.known = make(map[string]decodedReport, len(before))
	if r.claims == nil {
		r.claims = claimants{}
	}
	for _, obj := range s.List() {
		lease, ok := obj.(*coordinationv1.Lease)
		if !ok || lease.Annotations[records.AnnotationNode] == "" {
			continue
		}
		d := decodedReport{text: lease.Annotations[records.AnnotationNode], holder: ptr.Deref(lease.Spec.HolderIdentity, "")}
		if last := before[lease.Name]; last.text == d.text && last.holder == d.holder {
			d = last
		} else if n, err := records.DecodeReport(lease.Name, lease.Spec.HolderIdentity, d.text); err != nil {
			d.err = fmt.Errorf("read Lease %s: %w", lease.Name, err)
		} else {
			d.node = &n
		}
		if last := before[lease.Name]; last.node != d.node {
			r.claims.add(last.node, -1)
			r.claims.add(d.node, 1)
		}
		r.known[lease.Name] = d
		if d.err != nil {
			refused = append(refused, d.err)
			continue
		}
		nodes = append(nodes, reportedNode{Node: d.node, version: lease.ResourceVersion})
	}
	for name, last := range before {
		if _, there := r.known[name]; !there {
			r.claims.add(last.node, -1)
		}
	}
	return nodes, refused
}

func sortNodes(nodes []reportedNode) {
	slices.SortFunc(nodes, func(a, b reportedNode) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), a.Internal.Compare(b.Internal))
	})
}

// latestFirst returns the nodes in the order in which they are believed where several claim one pod: a node that died
// reports its pods for as long as its Node object is there, and one of them may have come back on another node. The
// API server's versions say who wrote last, whatever the nodes' clocks (comparable since Kubernetes 1.35, KEP-5504;
// of etcd's they were before). Where they are no numbers, the order stays.
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
