package desired

import (
	"fmt"
	"strings"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
)

// chooseOverlay selects a cluster's encapsulation from the reports of its nodes. Without a requested kind, a cluster
// keeps its current one as long as all nodes support it.
func chooseOverlay(nodes []records.Node, requested, decided records.OverlayKind) (records.OverlayKind, error) {
	candidates := []records.OverlayKind{decided, records.Geneve, records.VXLAN}
	if requested != "" {
		candidates = []records.OverlayKind{requested}
	}
	var reasons []string
	for _, kind := range candidates {
		if kind == "" {
			continue
		}
		without := nodesWithout(nodes, func(c records.Capabilities) bool {
			return kind == records.Geneve && c.Geneve || kind == records.VXLAN && c.VXLAN
		})
		if len(without) == 0 {
			return kind, nil
		}
		if kind != decided || requested != "" {
			reasons = append(reasons, fmt.Sprintf("no %s on %s", kind, strings.Join(without, ", ")))
		}
	}
	return "", hint.With(fmt.Errorf("choose the overlay: %s", strings.Join(reasons, "; ")),
		"load kernel module geneve or vxlan on these nodes")
}

// CheckImplementation rejects kernel WireGuard if a node that may run a gateway does not support it. Auto and userspace
// run on every node.
func CheckImplementation(nodes []records.Node, requested records.Implementation) error {
	if requested != records.Kernel {
		return nil
	}
	without := nodesWithout(nodes, func(c records.Capabilities) bool { return c.WireGuard })
	if len(without) == 0 {
		return nil
	}
	return hint.With(fmt.Errorf("use WireGuard of the kernel: none on %s", strings.Join(without, ", ")),
		"load kernel module wireguard on these nodes, or use --wireguard auto")
}

// nodesWithout returns the names and kernels of the nodes whose capabilities do not satisfy has.
func nodesWithout(nodes []records.Node, has func(records.Capabilities) bool) []string {
	var names []string
	for _, n := range nodes {
		if !has(n.Kernel) {
			names = append(names, fmt.Sprintf("%s (kernel %s)", n.Name, n.Kernel.Release))
		}
	}
	return names
}

// smallestMTU returns the smallest MTU in the nodes' reports, in bytes; 0 if there is none.
func smallestMTU(nodes []records.Node) int {
	smallest := 0
	for _, n := range nodes {
		smallest = minKnown(smallest, n.MTU)
	}
	return smallest
}

// WithReports adds the values from nodes' reports: overlay and MTU. Without raise, the MTU can only fall.
func WithReports(f records.Fabric, nodes []records.Node, requested records.OverlayKind, raise bool) (records.Fabric, error) {
	kind, err := chooseOverlay(nodes, requested, f.Overlay.Kind)
	if err != nil {
		return f, err
	}
	f.Overlay.Kind = kind
	if mtu := smallestMTU(nodes); f.MTU == 0 || mtu > 0 && (mtu < f.MTU || raise) {
		f.MTU = mtu
	}
	return f, nil
}
