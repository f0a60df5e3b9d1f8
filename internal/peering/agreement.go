package peering

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// errKeysTaken says that a cluster has keys by now, which somebody else made.
var errKeysTaken = errors.New("keys were made meanwhile")

// agreeOnKeys brings keys to both ends that fit each other, those that they hold and new ones for what is missing.
// Another connect of the same two may do so at this moment: a private key is only ever created, never written over,
// and of two preshared keys the server's counts, so that both arrive at the same. Nor are keys written over that
// somebody replaces at this moment.
func (c *connector) agreeOnKeys(ctx context.Context) error {
	if c.local.cluster.IsDryRun() && !c.rendering {
		return c.both(ctx, (*end).planKeys)
	}
	server, client := c.server(), c.server().peer
	found := map[*end]*inventory.Keys{server: server.keys, client: client.keys}
	for {
		s, k, err := inventory.CompleteKeys(server.keys, client.keys)
		if err != nil {
			return err
		}
		wanted := map[*end]inventory.Keys{server: s, client: k}
		err = c.both(ctx, func(e *end, ctx context.Context) error { return e.putKeys(ctx, wanted[e]) })
		if err == nil {
			for e, k := range wanted {
				e.keys = &k
				e.rekeyed = e.have != nil && !found[e].Equal(&k)
			}
			return nil
		}
		if !errors.Is(err, errKeysTaken) {
			return err
		}
		err = c.both(ctx, func(e *end, ctx context.Context) (err error) {
			e.keys, err = inventory.ReadKeys(ctx, e.cluster, e.peering)
			return err
		})
		if err != nil {
			return err
		}
	}
}

// planKeys plans keys where there are none. New ones are made by the run that stores them.
func (e *end) planKeys(ctx context.Context) error {
	if e.keys != nil {
		return nil
	}
	e.rekeyed = e.have != nil
	object := &corev1.Secret{ObjectMeta: inventory.Meta(e.cluster.Namespace, records.PeeringName(e.peering))}
	_, err := cluster.Swap(ctx, e.cluster, object, func(*corev1.Secret) (*corev1.Secret, error) { return object, nil })
	return err
}

// putKeys stores the keys of this end, provided that the cluster still has those that were read, or none.
func (e *end) putKeys(ctx context.Context, k inventory.Keys) error {
	e.joining = e.have == nil && !e.shared
	object := inventory.KeysObject(e.cluster.Namespace, e.peering, k)
	change, err := cluster.Swap(ctx, e.cluster, object, func(live *corev1.Secret) (*corev1.Secret, error) {
		var now *inventory.Keys
		if live != nil {
			var err error
			if now, err = inventory.DecodeKeys(live); err != nil {
				return nil, err
			}
		}
		if !now.Equal(e.keys) && !now.Equal(&k) { // the latter: written, and the answer was lost
			return nil, errKeysTaken
		}
		return object, nil
	})
	if e.keys == nil && errors.Is(err, errKeysTaken) {
		e.shared, e.joining = true, false
	}
	e.note(change)
	return err
}
