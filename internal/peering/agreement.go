package peering

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// agreeOnKeys brings keys to both ends that fit each other, those that they have and new ones for what is missing. A
// private key is only ever created, and replaced by a rotation alone. Of two preshared keys the server's counts.
func (c *connector) agreeOnKeys(ctx context.Context) error {
	if c.local.cluster.IsDryRun() && !c.rendering {
		return c.both(ctx, (*end).planKeys)
	}
	server, client := c.server(), c.server().peer
	s, k, err := inventory.CompleteKeys(server.keys, client.keys)
	if err != nil {
		return err
	}
	// If Secrets have different preshared keys, no gateway is known to run with the one that counts.
	anew := slices.ContainsFunc(slices.Concat(server.keys, client.keys), func(k *inventory.Keys) bool {
		return k != nil && k.Preshared() != s[0].Preshared()
	})
	wanted := map[*end][]inventory.Keys{server: s, client: k}
	return c.both(ctx, func(e *end, ctx context.Context) error {
		e.joining = e.have == nil
		return e.putKeys(ctx, wanted[e], anew)
	})
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

// planKeys plans keys where there are none. New ones are made by the run that stores them.
func (e *end) planKeys(ctx context.Context) error {
	for i, id := range e.gatewayIDs() {
		if e.keys[i] != nil {
			continue
		}
		e.rekeyed[i] = e.stands(i)
		object := &corev1.Secret{ObjectMeta: inventory.KeysMeta(e.cluster.Namespace, id)}
		_, err := kube.Swap(ctx, e.cluster, object, func(*corev1.Secret) (*corev1.Secret, error) { return object, nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// putKeys stores the keys of this end's gateways, provided that the cluster still has those that were read, or none. A
// gateway that has other keys by then, or may run with others, starts again; with anew, each does.
func (e *end) putKeys(ctx context.Context, wanted []inventory.Keys, anew bool) error {
	for i, id := range e.gatewayIDs() {
		if err := e.putKey(ctx, id, e.keys[i], wanted[i]); err != nil {
			return err
		}
		same := e.keys[i].Equal(&wanted[i])
		e.keys[i] = &wanted[i]
		e.rekeyed[i] = e.stands(i) && (anew || !same || !e.known(i))
	}
	return nil
}

// putKey stores the keys of a gateway of which others were read; nil: none.
func (e *end) putKey(ctx context.Context, id records.GatewayID, read *inventory.Keys, k inventory.Keys) error {
	object := inventory.KeysObject(e.cluster.Namespace, id, k)
	change, err := kube.Swap(ctx, e.cluster, object, func(live *corev1.Secret) (*corev1.Secret, error) {
		var now *inventory.Keys
		if live != nil {
			var err error
			if now, err = inventory.DecodeKeys(live); err != nil {
				return nil, err
			}
		}
		if !now.Equal(read) && !now.Equal(&k) { // k: it was written, and the response was lost
			return nil, inventory.Conflict(e.cluster, "Secret", object.Name)
		}
		return object, nil
	})
	e.note(change)
	return err
}
