// Package claim holds a node's number by a Lease, whose name has that number.
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

	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/records"
)

// Number returns the Lease that holds this node's number. If there is none yet, it takes a free one: the preferred one
// if it is free. The number is unique because a name can be created only once: 1,000 nodes at once need no common
// object and no lock. The Node owns the Lease, so the number is free again when the Node is deleted. A Lease of this
// node that has lost its label is found by its name and adopted.
func Number(ctx context.Context, client kubernetes.Interface, namespace string, node *corev1.Node, internalCIDR netip.Prefix, preferred int) (*coordinationv1.Lease, int, error) {
	own, err := ownLeases(ctx, client, namespace, node.Name)
	if err != nil {
		return nil, 0, err
	}
	most := records.MaxNodes(internalCIDR)
	if lease, n := claimedBefore(own, most, preferred); lease != nil {
		return lease, n, nil
	}
	leases := client.CoordinationV1().Leases(namespace)
	for n := range candidates(most, node.Name, preferred) {
		// A policy permits a node two Leases, one with an even number and one with an odd one.
		if len(own) == 1 && sameParity(own[0].Name, n) {
			continue
		}
		lease, err := leases.Create(ctx, nodeLease(namespace, node, n), metav1.CreateOptions{})
		switch {
		case err == nil:
			return lease, n, nil
		case !apierrors.IsAlreadyExists(err):
			return nil, 0, fmt.Errorf("claim number %d: %w", n, err)
		}
		lease, err = existing(ctx, client, namespace, records.NodeLeaseName(n))
		if err != nil {
			return nil, 0, err
		}
		if lease != nil && Held(lease, node.Name) {
			lease, err = Restore(ctx, client, lease, node)
			return lease, n, err
		}
	}
	return nil, 0, fmt.Errorf("claim a number: all %d of internal CIDR %s are taken", most, internalCIDR)
}

// claimedBefore returns the node's Lease that holds the preferred number, else its Lease of any number up to most; nil
// if there is none.
func claimedBefore(own []coordinationv1.Lease, most, preferred int) (found *coordinationv1.Lease, number int) {
	for _, l := range own {
		n, err := records.LeaseNumber(l.Name)
		if err == nil && n <= most && (found == nil || n == preferred) {
			found, number = &l, n
		}
	}
	return found, number
}

// sameParity reports whether the number of a Lease and another number are both even or both odd.
func sameParity(lease string, n int) bool {
	held, err := records.LeaseNumber(lease)
	return err == nil && held%2 == n%2
}

// existing returns the Lease of a name; nil if it no longer exists.
func existing(ctx context.Context, client kubernetes.Interface, namespace, name string) (*coordinationv1.Lease, error) {
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

func nodeLease(namespace string, node *corev1.Node, number int) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: records.NodeLeaseName(number), Namespace: namespace, Labels: leaseLabels(node.Name), OwnerReferences: leaseOwners(node),
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

// candidates yields the preferred number, if it is up to most, and then every number from 1 to most. It starts at a
// number that depends on the node's name, so that nodes that are created together rarely try the same one.
func candidates(most int, name string, preferred int) func(yield func(int) bool) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	first := int(h.Sum32()) % most
	return func(yield func(int) bool) {
		if preferred > 0 && preferred <= most && !yield(preferred) {
			return
		}
		for i := range most {
			if !yield(1 + (first+i)%most) {
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
		return nil, fmt.Errorf("restore the Lease of the node's number: %w", err)
	}
	return lease, nil
}
