package peering

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// errKeysTaken says that a cluster has keys by now, which somebody else made.
var errKeysTaken = hint.With(errors.New("somebody else has made keys during this run"), "run this again")

// agreeOnKeys brings keys to both ends that fit each other, those that they hold and new ones for what is missing.
// Another connect of the same two may do so at this moment: a private key is only ever created, and written over by a
// rotation alone, and of two preshared keys the server's counts, so that both arrive at the same. Nor are keys written
// over that somebody replaces at this moment.
func (c *connector) agreeOnKeys(ctx context.Context) error {
	if c.local.cluster.IsDryRun() && !c.rendering {
		return c.both(ctx, (*end).planKeys)
	}
	server, client := c.server(), c.server().peer
	found := map[*end][]*inventory.Keys{server: server.keys, client: client.keys}
	shared := slices.ContainsFunc(c.ends(), (*end).begun)
	for {
		s, k, err := inventory.CompleteKeys(server.keys, client.keys)
		if err != nil {
			return err
		}
		wanted := map[*end][]inventory.Keys{server: s, client: k}
		err = c.both(ctx, func(e *end, ctx context.Context) error { return e.putKeys(ctx, wanted[e]) })
		shared = shared || errors.Is(err, errKeysTaken)
		c.share(shared)
		if err == nil {
			// If Secrets have different preshared keys, no gateway is known to run with the one that counts.
			anew := slices.ContainsFunc(slices.Concat(found[server], found[client]), func(k *inventory.Keys) bool {
				return k != nil && k.Preshared() != s[0].Preshared()
			})
			for e, all := range wanted {
				e.keys = make([]*inventory.Keys, len(all))
				for i := range all {
					e.keys[i] = &all[i]
					e.rekeyed[i] = e.stands(i) && (anew || !found[e][i].Equal(&all[i]) || !e.known(i))
				}
			}
			return nil
		}
		if !errors.Is(err, errKeysTaken) {
			return err
		}
		if err := c.both(ctx, (*end).readKeys); err != nil {
			return err
		}
	}
}

// begun reports whether another run has made keys for a peering without a record.
func (e *end) begun() bool {
	return e.have == nil && slices.ContainsFunc(e.keys, func(k *inventory.Keys) bool { return k != nil })
}

// share takes note of whether another run makes what there is no record of.
func (c *connector) share(shared bool) {
	for _, e := range c.ends() {
		e.joining, e.shared = e.have == nil && !shared, e.have == nil && shared
	}
}

// stands reports whether the gateway of that number less one is in the record as it was found.
func (e *end) stands(i int) bool { return e.have != nil && i < len(e.have.Gateways) }

// known reports whether the peer's record, as it was found, names the public key of the gateway of that number less
// one. If not, an earlier run ended before it was written, and the gateway's pod may have keys of before.
func (e *end) known(i int) bool {
	if e.peer.have == nil {
		return true
	}
	return !slices.ContainsFunc(e.peer.have.Gateways, func(g records.LocalGateway) bool {
		return i < len(g.Tunnels) && g.Tunnels[i].PublicKey != e.keys[i].Public()
	})
}

// checkPeerKeys refuses to write public keys over those that a rotation has written since this run read them.
func (e *end) checkPeerKeys(live *records.Peering) error {
	if live == nil || e.have == nil {
		return nil
	}
	for i, g := range live.Gateways {
		for j, t := range g.Tunnels {
			found, stood := e.have.Tunnel(i+1, j+1)
			wanted, stays := e.written.Tunnel(i+1, j+1)
			if stood && stays && t.PublicKey != found.PublicKey && t.PublicKey != wanted.PublicKey {
				return errKeysTaken
			}
		}
	}
	return nil
}

// planKeys plans keys where there are none. New ones are made by the run that stores them.
func (e *end) planKeys(ctx context.Context) error {
	for i, id := range e.gatewayIDs() {
		if e.keys[i] != nil {
			continue
		}
		e.rekeyed[i] = e.stands(i)
		object := &corev1.Secret{ObjectMeta: inventory.KeysMeta(e.cluster.Namespace, id)}
		_, err := cluster.Swap(ctx, e.cluster, object, func(*corev1.Secret) (*corev1.Secret, error) { return object, nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// putKeys stores the keys of this end's gateways, provided that the cluster still has those that were read, or none.
func (e *end) putKeys(ctx context.Context, wanted []inventory.Keys) error {
	for i, id := range e.gatewayIDs() {
		if err := e.putKey(ctx, id, e.keys[i], wanted[i]); err != nil {
			return err
		}
	}
	return nil
}

// putKey stores the keys of a gateway of which others were read; nil: none.
func (e *end) putKey(ctx context.Context, id records.GatewayID, read *inventory.Keys, k inventory.Keys) error {
	object := inventory.KeysObject(e.cluster.Namespace, id, k)
	change, err := cluster.Swap(ctx, e.cluster, object, func(live *corev1.Secret) (*corev1.Secret, error) {
		var now *inventory.Keys
		if live != nil {
			var err error
			if now, err = inventory.DecodeKeys(live); err != nil {
				return nil, err
			}
		}
		if !now.Equal(read) && !now.Equal(&k) { // the latter: written, and the answer was lost
			return nil, errKeysTaken
		}
		return object, nil
	})
	e.note(change)
	return err
}
