package peering

import (
	"context"
	"fmt"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
)

// secret hands out a key. As a function it has no content that a print could show, however deep it is buried.
type secret func() wgtypes.Key

func hide(k wgtypes.Key) secret { return func() wgtypes.Key { return k } }

// keys are one side's secrets of a peering.
type keys struct {
	private   secret
	preshared secret // nil: none yet
}

// public is what the peer is told.
func (k keys) public() string { return k.private().PublicKey().String() }

// equal reports whether both are the same keys; nil is none.
func (k *keys) equal(o *keys) bool {
	if k == nil || o == nil {
		return k == o
	}
	return k.private() == o.private() && k.preshared() == o.preshared()
}

// readKeys returns the keys that a cluster holds for a peering; nil where it has none.
func readKeys(ctx context.Context, c *cluster.Cluster, peering string) (*keys, error) {
	object, err := cluster.Find[*corev1.Secret](ctx, c, records.PeeringName(peering))
	if object == nil || err != nil {
		return nil, err
	}
	return decodeKeys(object)
}

// decodeKeys reads the keys in a Secret.
func decodeKeys(object *corev1.Secret) (*keys, error) {
	var k keys
	var err error
	if k.private, err = decodeKey(object, records.PrivateKeyKey); err != nil {
		return nil, err
	}
	k.preshared, err = decodeKey(object, records.PresharedKeyKey)
	return &k, err
}

// decodeKey reads one key. Its error does not quote what it read.
func decodeKey(object *corev1.Secret, name string) (secret, error) {
	if key, err := wgtypes.ParseKey(string(object.Data[name])); err == nil {
		return hide(key), nil
	}
	return nil, hint.With(
		fmt.Errorf("read Secret %s/%s: %s is no WireGuard key", object.Namespace, object.Name, name),
		"delete the Secret, then connect again: new keys are made")
}

// completeKeys returns the keys of both sides, those that they hold and new ones for what is missing. A private
// key stays with its side; the preshared key is the same on both, and the server's counts.
func completeKeys(server, client *keys) (keys, keys, error) {
	s, err := orNew(server)
	if err != nil {
		return keys{}, keys{}, err
	}
	c, err := orNew(client)
	if err != nil {
		return keys{}, keys{}, err
	}
	if s.preshared == nil {
		s.preshared = c.preshared
	}
	if s.preshared == nil {
		preshared, err := wgtypes.GenerateKey()
		if err != nil {
			return keys{}, keys{}, fmt.Errorf("make a preshared key: %w", err)
		}
		s.preshared = hide(preshared)
	}
	c.preshared = s.preshared
	return s, c, nil
}

// orNew returns the keys, or a new private key alone.
func orNew(k *keys) (keys, error) {
	if k != nil {
		return *k, nil
	}
	private, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		return keys{}, fmt.Errorf("make a private key: %w", err)
	}
	return keys{private: hide(private)}, nil
}

// keysObject is the Secret of one side.
func keysObject(namespace, peering string, k keys) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: recordMeta(namespace, records.PeeringName(peering)),
		Type:       corev1.SecretTypeOpaque,
		// base64, as wg(8) prints keys, inside the API's own base64: a mounted file is text.
		Data: map[string][]byte{
			records.PrivateKeyKey:   []byte(k.private().String()),
			records.PresharedKeyKey: []byte(k.preshared().String()),
		},
	}
}
