//go:build linux

package helper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/records"
)

// reportedNode is what a node reports.
type reportedNode struct {
	records.Node
	version string // of the Lease that bears the report; each write of any Lease has a higher one
}

// nodeRecords decodes what the nodes report. refused are the errors of reports that are damaged, or tell of another
// node: each concerns that node alone.
func nodeRecords(s cache.Store) (nodes []reportedNode, refused []error) {
	for _, obj := range s.List() {
		lease, ok := obj.(*coordinationv1.Lease)
		if !ok || lease.Annotations[records.AnnotationNode] == "" {
			continue
		}
		n, err := records.DecodeReport(lease.Name, lease.Spec.HolderIdentity, lease.Annotations[records.AnnotationNode])
		if err != nil {
			refused = append(refused, fmt.Errorf("read Lease %s: %w", lease.Name, err))
			continue
		}
		nodes = append(nodes, reportedNode{Node: n, version: lease.ResourceVersion})
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
