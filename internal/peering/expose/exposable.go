package expose

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/ipam"
)

// notExposable returns the error for an address that cannot be exposed, with a hint.
func notExposable(host netip.Addr, why, hint string) error {
	return &progress.InputError{Err: fmt.Errorf("expose %s: %s", host, why), Advice: hint}
}

// Ranges without hosts: RFC 1122 (3.2.1.3) and RFC 1112 (4).
var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	classE      = netip.MustParsePrefix("240.0.0.0/4")
)

// checkHost rejects addresses that no host can have.
func checkHost(a netip.Addr) error {
	const byItsOwn = "use the IPv4 address at which the cluster's nodes reach the host"
	refused := func(why string) error { return notExposable(a, why, byItsOwn) }
	switch {
	case !a.Is4():
		return refused("not an IPv4 address")
	case a.IsLoopback():
		return refused("loopback addresses cannot be exposed")
	case a.IsLinkLocalUnicast():
		return refused("link-local addresses cannot be exposed")
	case a.IsMulticast():
		return refused("multicast addresses cannot be exposed")
	case thisNetwork.Contains(a), classE.Contains(a):
		return refused("the address is in a reserved range")
	}
	return nil
}

// checkOutside rejects addresses of the cluster and of its peers.
func (x *exposer) checkOutside(ctx context.Context) error {
	held, err := inventory.Reservations(ctx, x.Cluster)
	if err != nil {
		return err
	}
	if err := x.checkRanges(held); err != nil {
		return err
	}
	nodes, err := kube.All[*corev1.Node](ctx, x.Cluster, "")
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == x.Host.String() }) {
			return notExposable(x.Host, "it is node "+node.Name+" of the cluster", "peers reach nodes at their external addresses already: liqoctl ipam translate --to "+x.Peer)
		}
	}
	servers, err := discover.APIServers(ctx, x.Cluster)
	if err != nil {
		return err
	}
	if slices.Contains(servers, x.Host) {
		return notExposable(x.Host, "it is the cluster's API server", "expose a proxy in front of it instead")
	}
	return nil
}

// checkRanges rejects addresses in ranges that the registry reserves for the cluster and its peers.
func (x *exposer) checkRanges(r *ipam.Registry) error {
	hints := map[ipam.Purpose]string{
		ipam.PodCIDR:      "the peer reaches pods without this: liqoctl ipam translate --to " + x.Peer,
		ipam.ServiceCIDR:  "expose the hosts behind the Service, or mirror its EndpointSlices: docs/services.md",
		ipam.ExternalCIDR: "name the host by its own address",
		ipam.InternalCIDR: "name the host by its own address",
		ipam.PeerPods:     "a peer is reached by its own peering: there is no transit",
		ipam.PeerExternal: "a peer is reached by its own peering: there is no transit",
	}
	for _, held := range r.List() {
		if hint, reserved := hints[held.Purpose]; reserved && held.Range.Contains(x.Host) {
			return notExposable(x.Host, fmt.Sprintf("it is inside %s %s", held.Use(), held.Range), hint)
		}
	}
	return nil
}
