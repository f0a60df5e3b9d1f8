//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/kernel"
)

// report is the content that is written to a Lease.
type report struct {
	lease string // "": the node has none yet
	node  records.Node
}

// sameButDrift reports whether two reports differ at most in drift, and in the node's surroundings: these can wait.
func sameButDrift(a, b report) bool {
	a.node.Drift, b.node.Drift = records.Drift{}, records.Drift{}
	a.node.Surroundings, b.node.Surroundings = records.Surroundings{}, records.Surroundings{}
	return reflect.DeepEqual(a, b)
}

// report passes the node's record to its writer; applied are the peerings whose state the kernel has.
func (l *loop) report(v view, applied []string) error {
	if l.claims.lease == "" {
		return nil
	}
	detours := l.detours(v, applied)
	r := records.Node{
		Version: records.SchemaVersion, Name: l.Name, Number: l.claims.number, Kernel: l.kernelHas,
		PodCIDRs: v.pods.cidrs, Pods: v.pods.stray, Peerings: applied, Guarded: v.Guarded, Refused: v.refused,
		Address: addressOf(v.node),
		Clean:   v.fabric == nil && !v.blind && len(v.HeldBack) == 0, Drift: l.Drift, ForwardDrops: l.forwardDrops(),
		NotForwarding: notForwarding(),
	}
	err := l.measure(v, &r)
	var e error
	r.Surroundings, e = l.surroundings(v)
	l.reports.Change(func(report *report) {
		r.Witness = report.node.Witness // reportWitness changes it
		report.lease, report.node = l.claims.lease, r
	})
	return errors.Join(err, e, detours)
}

// addressOf returns the address of a node for other clusters, which liqoctl also uses for the endpoints of a NodePort.
func addressOf(node *corev1.Node) (found netip.Addr) {
	for _, a := range node.Status.Addresses {
		ip, _ := netip.ParseAddr(a.Address) // a name is not an address
		switch {
		case !ip.Is4():
		case a.Type == corev1.NodeExternalIP:
			return ip
		case a.Type == corev1.NodeInternalIP && !found.IsValid():
			found = ip
		}
	}
	return found
}

// anywhere is an address for which only the default route matters (TEST-NET-1, RFC 5737).
var anywhere = netip.AddrFrom4([4]byte{192, 0, 2, 1})

// measure reads from the routing table how packets leave for gateways, pods and other destinations. The overlay's
// packets have those source addresses and must fit those links.
func (l *loop) measure(v view, r *records.Node) error {
	smallest := func(mtu int) {
		if mtu > 0 && (r.MTU == 0 || mtu < r.MTU) {
			r.MTU = mtu
		}
	}
	if p, err := kernel.PathTo(anywhere); err == nil {
		smallest(p.MTU)
	}
	var errs []error
	if v.fabric != nil {
		// Also to pods of other nodes, which the network plugin may encapsulate in its own tunnel.
		mtu, err := l.routeSizes.get(v.fabric.PodCIDRs, l.Kernel.SmallestMTU)
		errs = append(errs, err)
		smallest(mtu)
	}
	for id, g := range v.gateways {
		path, err := kernel.PathTo(g.PodIP)
		if err != nil {
			errs = append(errs, fmt.Errorf("path to gateway %s: %w", id, err))
			continue
		}
		smallest(path.MTU)
		if r.OverlaySources == nil {
			r.OverlaySources = map[records.GatewayID]netip.Addr{}
		}
		r.OverlaySources[id] = path.Source
	}
	return errors.Join(errs...)
}

// write writes a report to an annotation of the Lease that holds the node's number.
func (l *loop) write(ctx context.Context, r report) (string, error) {
	if r.lease == "" {
		return "", nil
	}
	text, err := records.Encode(r.node)
	if err != nil {
		return "", err
	}
	annotations := map[string]string{records.AnnotationNode: text}
	_, err = publish.Patch(ctx, l.Client.CoordinationV1().Leases(l.Namespace), r.lease, map[string]any{"annotations": annotations}, nil)
	return text, err
}

// leaseHas reports whether a Lease has the report as written. The loop handles a Lease that does not exist.
func (l *loop) leaseHas(r report, text string) bool {
	lease := cache.Named[*coordinationv1.Lease](l.leases, l.Namespace, r.lease)
	return lease == nil || lease.Annotations[records.AnnotationNode] == text
}
