//go:build linux

package helper

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/cidr"
)

// claims is what a node knows of the Lease that holds its internal address. The zero value: it has none.
type claims struct {
	internal netip.Addr
	lease    string
	at       time.Time // when it was claimed last
	seen     bool      // the informer has shown it since
	recalled bool      // the Leases were searched for that of an earlier process
	mended   time.Time // when others' changes of it were undone last
}

// leaseLag is how long the API server may take to show a Lease that was just claimed, and leaseRest the least time
// between two repairs of one: whoever changes it again and again costs no more.
const (
	leaseLag  = 2 * time.Second
	leaseRest = 2 * time.Second
)

// claim makes sure that the node has an internal address of the fabric's range, and that the Lease which holds it is as
// it should be, whatever others did to it.
func (l *nodeLoop) claim(ctx context.Context, v nodeView) error {
	if v.fabric == nil {
		return l.recall(ctx)
	}
	node, err := l.self()
	if err != nil {
		return err
	}
	c := &l.claims
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if c.internal.IsValid() && cidr.Lower(v.fabric.InternalCIDR).Contains(c.internal) && l.holds(time.Now()) {
		return l.mend(ctx, node)
	}
	lease, a, err := claimAddress(ctx, l.Client, l.Namespace, node, v.fabric.InternalCIDR, c.internal)
	if err != nil {
		return err
	}
	if c.internal != a || c.lease == "" {
		l.Log.Info("internal address", "address", a)
	} else {
		l.Log.Warn("the Lease of the internal address was gone: claimed again", "address", a)
	}
	*c = claims{internal: a, lease: lease.Name, at: time.Now(), recalled: c.recalled}
	// To look whether it is there: it may be gone before it was seen.
	time.AfterFunc(leaseLag, func() { notify(l.wake) })
	return nil
}

// holds reports whether the node's Lease is there and its own.
func (l *nodeLoop) holds(now time.Time) bool {
	lease := named[*coordinationv1.Lease](l.leases, l.Namespace, l.claims.lease)
	if lease == nil {
		return !l.claims.seen && now.Sub(l.claims.at) < leaseLag
	}
	l.claims.seen = true
	return heldBy(lease, l.Name)
}

// mend undoes others' changes of the Lease: of the labels by which the node and gateways find it, and of the owner with
// which it goes, which is another one when the Node object was made anew.
func (l *nodeLoop) mend(ctx context.Context, node *corev1.Node) error {
	lease := named[*coordinationv1.Lease](l.leases, l.Namespace, l.claims.lease)
	if lease == nil || asClaimed(lease, node) {
		return nil
	}
	if rest := leaseRest - time.Since(l.claims.mended); rest > 0 {
		time.AfterFunc(rest, func() { notify(l.wake) })
		return nil
	}
	l.claims.mended = time.Now()
	l.Log.Warn("the Lease of the internal address was altered, restoring", "lease", lease.Name)
	_, err := adopt(ctx, l.Client, lease, node)
	return err
}

// asClaimed reports whether a Lease has the labels and the owner that it was made with.
func asClaimed(lease *coordinationv1.Lease, node *corev1.Node) bool {
	labels := maps.Clone(lease.Labels)
	maps.Copy(labels, leaseLabels(node.Name))
	return reflect.DeepEqual(labels, lease.Labels) && reflect.DeepEqual(lease.OwnerReferences, leaseOwners(node))
}

// adopt gives a node's Lease its labels and its owner.
func adopt(ctx context.Context, client kubernetes.Interface, lease *coordinationv1.Lease, node *corev1.Node) (*coordinationv1.Lease, error) {
	metadata := map[string]any{"labels": leaseLabels(node.Name), "ownerReferences": leaseOwners(node)}
	lease, err := patch(ctx, client.CoordinationV1().Leases(lease.Namespace), lease.Name, metadata, nil)
	if err != nil {
		return nil, fmt.Errorf("bring back the Lease of the internal address: %w", err)
	}
	return lease, nil
}

// recall finds the Lease that an earlier process of this node reported to, where there is no fabric any more: who
// deleted it waits for the report that the node is clean.
func (l *nodeLoop) recall(ctx context.Context) error {
	c := &l.claims
	if c.lease != "" || c.recalled {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	own, err := ownLeases(ctx, l.Client, l.Namespace, l.Name)
	if err != nil {
		return err
	}
	for _, lease := range own {
		if a, err := leaseAddress(lease); err == nil {
			c.internal, c.lease = a, lease.Name
		}
	}
	c.recalled = true
	return nil
}
