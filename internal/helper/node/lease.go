//go:build linux

package node

import (
	"context"
	"net/netip"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/claim"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
)

// claims is the state of the Lease that holds a node's number. The zero value: it has none.
type claims struct {
	number   int
	internal netip.Addr // by the number; the zero value: not known
	lease    string
	at       time.Time // when it was last claimed
	seen     bool      // the informer has shown it since
	restored time.Time // when external changes of it were last undone
}

// leaseLag is how long the API server may take to show a new Lease, and leaseRest the minimum interval of its repairs,
// which bounds the cost of repeated changes.
const (
	leaseLag  = 2 * time.Second
	leaseRest = 2 * time.Second
)

// claim ensures that the node has a number in the fabric's range, and that its Lease exists and is unchanged.
func (l *loop) claim(ctx context.Context, v view) error {
	if v.fabric == nil {
		l.findLease()
		return nil
	}
	c := &l.claims
	ctx, cancel := context.WithTimeout(ctx, helper.APITimeout)
	defer cancel()
	internal := v.fabric.InternalCIDR()
	if c.number > 0 && c.number <= records.MaxNodes(internal) && l.holds(time.Now()) {
		c.internal = records.NodeAddress(internal, c.number)
		return l.restore(ctx, v.node)
	}
	lease, number, err := claim.Number(ctx, l.Client, l.Namespace, v.node, internal, c.number)
	if err != nil {
		return err
	}
	if c.number != number || c.lease == "" {
		l.Log.Info("number of this node", "number", number, "address", records.NodeAddress(internal, number))
	} else {
		l.Log.Warn("the Lease of this node's number was gone: claimed again", "number", number)
	}
	*c = claims{number: number, internal: records.NodeAddress(internal, number), lease: lease.Name, at: time.Now()}
	// To check that it exists: it may be deleted before the informer shows it.
	time.AfterFunc(leaseLag, func() { wakeup.Notify(l.wake) })
	return nil
}

// holds reports whether the node's Lease exists and is its own.
func (l *loop) holds(now time.Time) bool {
	lease := cache.Named[*coordinationv1.Lease](l.leases, l.Namespace, l.claims.lease)
	if lease == nil {
		return !l.claims.seen && now.Sub(l.claims.at) < leaseLag
	}
	l.claims.seen = true
	return claim.Held(lease, l.Name)
}

// restore undoes external changes of the Lease: of the labels by which the node and gateways find it, and of its owner,
// which changes when the Node object is recreated.
func (l *loop) restore(ctx context.Context, node *corev1.Node) error {
	lease := cache.Named[*coordinationv1.Lease](l.leases, l.Namespace, l.claims.lease)
	if lease == nil || claim.Unchanged(lease, node) {
		return nil
	}
	if rest := leaseRest - time.Since(l.claims.restored); rest > 0 {
		time.AfterFunc(rest, func() { wakeup.Notify(l.wake) })
		return nil
	}
	l.claims.restored = time.Now()
	l.Log.Warn("the Lease of this node's number was altered, restoring", "lease", lease.Name)
	_, err := claim.Restore(ctx, l.Client, lease, node)
	return err
}

// findLease finds the Lease of an earlier process of this node, after the fabric was deleted: the CLI waits for the
// report that the node is clean.
func (l *loop) findLease() {
	for _, lease := range cache.Listed[*coordinationv1.Lease](l.leases) {
		if number, err := records.LeaseNumber(lease.Name); err == nil && claim.Held(lease, l.Name) && l.claims.lease == "" {
			l.claims.number, l.claims.lease = number, lease.Name
		}
	}
}
