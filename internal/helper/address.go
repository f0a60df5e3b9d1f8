//go:build linux

package helper

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/records"
)

// claimAddress returns the Lease that holds this node's internal address, taking a free address if there is
// none yet. That a name is created once only makes an address unique: 1,000 nodes at once need no common
// object and no lock. The Node owns the Lease, so an address is free again when its node is gone.
func claimAddress(ctx context.Context, client kubernetes.Interface, namespace string, node *corev1.Node, internalCIDR netip.Prefix) (*coordinationv1.Lease, netip.Addr, error) {
	own, err := ownLeases(ctx, client, namespace, node)
	if err != nil {
		return nil, netip.Addr{}, err
	}
	for _, l := range own {
		if a, err := records.LeaseAddress(l.Name); err == nil && nodeRange(internalCIDR).Contains(a) {
			return &l, a, nil
		}
	}
	leases := client.CoordinationV1().Leases(namespace)
	for a := range candidates(internalCIDR, node.Name) {
		lease, err := leases.Create(ctx, addressLease(namespace, node, a), metav1.CreateOptions{})
		if err == nil {
			return lease, a, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, netip.Addr{}, fmt.Errorf("claim internal address %s: %w", a, err)
		}
	}
	return nil, netip.Addr{}, fmt.Errorf("claim internal address: all addresses of %s are taken", nodeRange(internalCIDR))
}

// ownLeases are the Leases that this node holds.
func ownLeases(ctx context.Context, client kubernetes.Interface, namespace string, node *corev1.Node) ([]coordinationv1.Lease, error) {
	own, err := client.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{LabelSelector: records.LabelNode + "=" + nodeLabel(node)})
	if err != nil {
		return nil, fmt.Errorf("list Leases: %w", err)
	}
	return own.Items, nil
}

func addressLease(namespace string, node *corev1.Node, a netip.Addr) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:      records.AddressLeaseName(a),
			Namespace: namespace,
			Labels:    map[string]string{records.LabelComponent: records.ComponentNode, records.LabelNode: nodeLabel(node)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID,
			}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node.Name},
	}
}

// nodeLabel is a label value that names a node: its UID, as node names may be longer than a label.
func nodeLabel(node *corev1.Node) string { return string(node.UID) }

// nodeRange is the part of the internal CIDR that belongs to nodes: its first half.
func nodeRange(internalCIDR netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(internalCIDR.Masked().Addr(), internalCIDR.Bits()+1)
}

// candidates yields every address of the nodes' range once, without its first and last, from a start that
// depends on the node's name: nodes that appear together seldom ask for the same one.
func candidates(internalCIDR netip.Prefix, name string) func(yield func(netip.Addr) bool) {
	r := nodeRange(internalCIDR)
	first := r.Addr().As4()
	base, count := binary.BigEndian.Uint32(first[:]), uint32(1)<<(32-r.Bits())-2
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return func(yield func(netip.Addr) bool) {
		for i := range count {
			var b [4]byte
			binary.BigEndian.PutUint32(b[:], base+1+(h.Sum32()%count+i)%count)
			if !yield(netip.AddrFrom4(b)) {
				return
			}
		}
	}
}
