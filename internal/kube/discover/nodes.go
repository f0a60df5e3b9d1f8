package discover

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/kube"
)

// nodeBlock is the prefix length of the ranges that are assumed around node addresses.
const nodeBlock = 24

// usableNodes returns the nodes that can run the node helper: Linux, with a kubelet and an IPv4 address.
func (q *question) usableNodes() []Node {
	var nodes []Node
	for i := range q.inv.nodes.Items {
		object := &q.inv.nodes.Items[i]
		if reason := exclusionReason(object); reason != "" {
			q.note("skipping node %s: %s", object.Name, reason)
			continue
		}
		node := Node{Name: object.Name, Ready: kube.Ready(object)}
		for _, a := range object.Status.Addresses {
			switch a.Type {
			case corev1.NodeInternalIP:
				node.Internal = append(node.Internal, addresses(a.Address)...)
			case corev1.NodeExternalIP:
				node.External = append(node.External, addresses(a.Address)...)
			}
		}
		if len(node.Internal) == 0 {
			q.note("node %s has no internal IPv4 address", node.Name)
		}
		node.PodCIDRs, _ = parsePrefixes(append(object.Spec.PodCIDRs, object.Spec.PodCIDR))
		nodes = append(nodes, node)
	}
	slices.SortStableFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

// RunsHelpers reports whether a node can run the node helper.
func RunsHelpers(node *corev1.Node) bool { return exclusionReason(node) == "" }

// exclusionReason returns the reason why a node cannot run the node helper; "" if it can. It matches the affinity of
// the node DaemonSet.
func exclusionReason(node *corev1.Node) string {
	switch {
	case node.Labels[corev1.LabelOSStable] != "" && node.Labels[corev1.LabelOSStable] != string(corev1.Linux):
		return "it runs " + node.Labels[corev1.LabelOSStable]
	case node.Labels["type"] == "virtual-kubelet", node.Labels["liqo.io/type"] == "virtual-node":
		return "it is a virtual node"
	case node.Labels["eks.amazonaws.com/compute-type"] == "fargate":
		return "it is a Fargate node"
	}
	return ""
}

// nodeNetworks returns ranges that contain the nodes' addresses, so that remapped ranges do not overlap them. The API
// does not have the nodes' netmasks: the /24 around each address is assumed, and neighbours are merged, which leaves
// room for nodes that join. Where the /24 would overlap pods or Services, as in networks with smaller subnets, only the
// address itself is used.
func (q *question) nodeNetworks(pods Ranges) (Ranges, error) {
	return q.ranges(rangeQuery{
		what: "node network", flag: "node-network", given: q.overrides.NodeNetworks,
		stray:   func([]netip.Prefix) string { return "" },
		unknown: "no node has an internal IPv4 address",
		sources: []func() Ranges{func() Ranges { return q.nodeBlocks(pods) }},
	})
}

func (q *question) nodeBlocks(pods Ranges) Ranges {
	taken := slices.Concat(pods.Prefixes, q.services.Prefixes)
	var blocks []netip.Prefix
	for _, node := range q.nodes {
		for _, a := range node.Internal {
			block := netip.PrefixFrom(a, nodeBlock).Masked()
			if cidr.Overlaps(block, taken) {
				block = netip.PrefixFrom(a, a.BitLen())
			}
			blocks = append(blocks, block)
		}
	}
	return Ranges{Prefixes: cidr.Merged(blocks), Source: "node addresses"}
}

// addresses returns the IPv4 addresses in texts, without duplicates.
func addresses(texts ...string) []netip.Addr {
	var all []netip.Addr
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}
