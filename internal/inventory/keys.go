package inventory

import (
	"context"
	"fmt"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
)

// Secret hands out a key. As a function it has no content that a print could show, however deep it is buried.
type Secret func() wgtypes.Key

// Hide is the Secret of a key.
func Hide(k wgtypes.Key) Secret { return func() wgtypes.Key { return k } }

// Keys are one side's secrets of a peering.
type Keys struct {
	Private   Secret
	Preshared Secret // nil: none yet
}

// Public returns the public key, which the peer needs.
func (k Keys) Public() string { return k.Private().PublicKey().String() }

// Equal reports whether both are the same keys; nil is none.
func (k *Keys) Equal(o *Keys) bool {
	if k == nil || o == nil {
		return k == o
	}
	return k.Private() == o.Private() && k.Preshared() == o.Preshared()
}

// ReadKeys returns the keys that a cluster holds for a peering; nil where it has none.
func ReadKeys(ctx context.Context, c *cluster.Cluster, peering string) (*Keys, error) {
	object, err := cluster.Find[*corev1.Secret](ctx, c, records.PeeringName(peering))
	if object == nil || err != nil {
		return nil, err
	}
	return DecodeKeys(object)
}

// DecodeKeys reads the keys in a Secret.
func DecodeKeys(object *corev1.Secret) (*Keys, error) {
	var k Keys
	var err error
	if k.Private, err = decodeKey(object, records.PrivateKeyKey); err != nil {
		return nil, err
	}
	k.Preshared, err = decodeKey(object, records.PresharedKeyKey)
	return &k, err
}

// decodeKey reads one key. Its error does not quote what it read.
func decodeKey(object *corev1.Secret, name string) (Secret, error) {
	if key, err := wgtypes.ParseKey(string(object.Data[name])); err == nil {
		return Hide(key), nil
	}
	return nil, hint.With(
		fmt.Errorf("read Secret %s/%s: %s is no WireGuard key", object.Namespace, object.Name, name),
		"delete the Secret, then connect again: new keys are made")
}

// CompleteKeys returns the keys of both sides, those that they hold and new ones for what is missing. A private
// key stays with its side; the preshared key is the same on both, and the server's counts.
func CompleteKeys(server, client *Keys) (Keys, Keys, error) {
	s, err := orNew(server)
	if err != nil {
		return Keys{}, Keys{}, err
	}
	c, err := orNew(client)
	if err != nil {
		return Keys{}, Keys{}, err
	}
	if s.Preshared == nil {
		s.Preshared = c.Preshared
	}
	if s.Preshared == nil {
		preshared, err := wgtypes.GenerateKey()
		if err != nil {
			return Keys{}, Keys{}, fmt.Errorf("make a preshared key: %w", err)
		}
		s.Preshared = Hide(preshared)
	}
	c.Preshared = s.Preshared
	return s, c, nil
}

// orNew returns the keys, or a new private key alone.
func orNew(k *Keys) (Keys, error) {
	if k != nil {
		return *k, nil
	}
	private, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		return Keys{}, fmt.Errorf("make a private key: %w", err)
	}
	return Keys{Private: Hide(private)}, nil
}

// KeysObject is the Secret of one side.
func KeysObject(namespace, peering string, k Keys) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: Meta(namespace, records.PeeringName(peering)),
		Type:       corev1.SecretTypeOpaque,
		// base64, as wg(8) prints keys, inside the API's own base64: a mounted file is text.
		Data: map[string][]byte{
			records.PrivateKeyKey:   []byte(k.Private().String()),
			records.PresharedKeyKey: []byte(k.Preshared().String()),
		},
	}
}
