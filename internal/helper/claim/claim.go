// Package claim holds a node's internal address by a Lease, whose name is that address.
package claim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/records"
)

// Address returns the Lease that holds this node's internal address. If there is none yet, it takes a free
// address: the preferred one if it is free. The address is unique because a name can be created only once: 1,000 nodes
// at once need no common object and no lock. The Node owns the Lease, so the address is free again when the Node is
// deleted. A Lease of this node that has lost its label is found by its name and adopted.
func Address(ctx context.Context, client kubernetes.Interface, namespace string, node *corev1.Node, internalCIDR netip.Prefix, preferred netip.Addr) (*coordinationv1.Lease, netip.Addr, error) {
	own, err := ownLeases(ctx, client, namespace, node.Name)
	if err != nil {
		return nil, netip.Addr{}, err
	}
	if lease, a := claimedBefore(own, internalCIDR, preferred); lease != nil {
		return lease, a, nil
	}
	leases := client.CoordinationV1().Leases(namespace)
	for a := range candidates(internalCIDR, node.Name, preferred) {
		// A policy permits a node two Leases, one with an even address and one with an odd one.
		if len(own) == 1 && sameParity(own[0].Name, records.AddressLeaseName(a)) {
			continue
		}
		lease, err := leases.Create(ctx, addressLease(namespace, node, a), metav1.CreateOptions{})
		switch {
		case err == nil:
			return lease, a, nil
		case !apierrors.IsAlreadyExists(err):
			return nil, netip.Addr{}, fmt.Errorf("claim internal address %s: %w", a, err)
		}
		lease, err = existing(ctx, client, namespace, a)
		if err != nil {
			return nil, netip.Addr{}, err
		}
		if lease != nil && Held(lease, node.Name) {
			lease, err = Restore(ctx, client, lease, node)
			return lease, a, err
		}
	}
	return nil, netip.Addr{}, fmt.Errorf("claim internal address: all addresses of %s are taken", cidr.Lower(internalCIDR))
}

// claimedBefore returns the node's Lease that holds the preferred address, else its Lease of any address in the
// nodes' range; nil if there is none.
func claimedBefore(own []coordinationv1.Lease, internalCIDR netip.Prefix, preferred netip.Addr) (*coordinationv1.Lease, netip.Addr) {
	for _, wanted := range []netip.Addr{preferred, {}} {
		for _, l := range own {
			a, err := Of(l)
			if err == nil && cidr.Lower(internalCIDR).Contains(a) && (a == wanted || !wanted.IsValid()) {
				return &l, a
			}
		}
	}
	return nil, netip.Addr{}
}

// sameParity reports whether the addresses of two Leases are both even or both odd.
func sameParity(one, other string) bool {
	a, _ := records.LeaseAddress(one)
	b, _ := records.LeaseAddress(other)
	return a.Is4() && b.Is4() && cidr.Number(a)%2 == cidr.Number(b)%2
}

// existing returns the Lease of an address; nil if it no longer exists.
func existing(ctx context.Context, client kubernetes.Interface, namespace string, a netip.Addr) (*coordinationv1.Lease, error) {
	name := records.AddressLeaseName(a)
	list, err := client.CoordinationV1().Leases(namespace).List(ctx, cache.Selection{Name: name}.Options(metav1.ListOptions{}))
	if err != nil {
		return nil, fmt.Errorf("read Lease %s: %w", name, err)
	}
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// ownLeases returns the Leases that a node holds.
func ownLeases(ctx context.Context, client kubernetes.Interface, namespace, node string) ([]coordinationv1.Lease, error) {
	own, err := client.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{LabelSelector: records.LabelNode + "=" + NodeLabel(node)})
	if err != nil {
		return nil, fmt.Errorf("list Leases: %w", err)
	}
	return slices.DeleteFunc(own.Items, func(l coordinationv1.Lease) bool { return !Held(&l, node) }), nil
}

// Held reports whether a node holds a Lease.
func Held(l *coordinationv1.Lease, node string) bool {
	return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == node
}

// Of returns the address that a Lease holds.
func Of(l coordinationv1.Lease) (netip.Addr, error) { return records.LeaseAddress(l.Name) }

func addressLease(namespace string, node *corev1.Node, a netip.Addr) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: records.AddressLeaseName(a), Namespace: namespace, Labels: leaseLabels(node.Name), OwnerReferences: leaseOwners(node),
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node.Name},
	}
}

func leaseLabels(node string) map[string]string {
	return map[string]string{records.LabelComponent: records.ComponentNode, records.LabelNode: NodeLabel(node)}
}

func leaseOwners(node *corev1.Node) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
}

// NodeLabel returns the label value by which a node finds its Lease: its name, which stays when its Node object is
// recreated, or the end of its hash if the name is longer than a label. The holder identity is the owner of the Lease.
func NodeLabel(node string) string {
	if len(node) <= validation.LabelValueMaxLength {
		return node
	}
	sum := sha256.Sum256([]byte(node))
	return hex.EncodeToString(sum[:16])
}

// candidates yields the preferred address, if it is in the nodes' range, and then every address of that range without
// the first and last. It starts at an address that depends on the node's name, so that nodes that are created together
// rarely try the same one.
func candidates(internalCIDR netip.Prefix, name string, preferred netip.Addr) func(yield func(netip.Addr) bool) {
	r := cidr.Lower(internalCIDR)
	base, count := cidr.Number(r.Addr()), uint32(1)<<(32-r.Bits())-2
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return func(yield func(netip.Addr) bool) {
		if r.Contains(preferred) && !yield(preferred) {
			return
		}
		for i := range count {
			if !yield(cidr.Address(base + 1 + (h.Sum32()%count+i)%count)) {
				return
			}
		}
	}
}

// Unchanged reports whether a Lease has its original labels and owner.
func Unchanged(lease *coordinationv1.Lease, node *corev1.Node) bool {
	labels := maps.Clone(lease.Labels)
	maps.Copy(labels, leaseLabels(node.Name))
	return reflect.DeepEqual(labels, lease.Labels) && reflect.DeepEqual(lease.OwnerReferences, leaseOwners(node))
}

// Restore sets the labels and the owner of a node's Lease.
func Restore(ctx context.Context, client kubernetes.Interface, lease *coordinationv1.Lease, node *corev1.Node) (*coordinationv1.Lease, error) {
	metadata := map[string]any{"labels": leaseLabels(node.Name), "ownerReferences": leaseOwners(node)}
	lease, err := publish.Patch(ctx, client.CoordinationV1().Leases(lease.Namespace), lease.Name, metadata, nil)
	if err != nil {
		return nil, fmt.Errorf("restore the Lease of the internal address: %w", err)
	}
	return lease, nil
}
