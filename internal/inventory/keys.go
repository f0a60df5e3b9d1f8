package inventory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/wireguard"
)

// Secret returns a key. Because it is a function, printing a value that contains it does not show the key.
type Secret func() wgtypes.Key

// Hide wraps a key in a Secret.
func Hide(k wgtypes.Key) Secret { return func() wgtypes.Key { return k } }

// HideBytes wraps the 32 bytes of a key.
func HideBytes(key []byte) (Secret, error) {
	k, err := wgtypes.NewKey(key)
	return Hide(k), err
}

// Keys are the secrets of a gateway for a peering.
type Keys struct {
	Private   Secret
	Preshared Secret // nil: not generated yet
	// Created is the creation time of the key pair; zero: not known.
	Created time.Time
}

// Public returns the public key.
func (k *Keys) Public() string { return k.Private().PublicKey().String() }

// Driver returns the public part, for the peer's record; the zero value for nil.
func (k *Keys) Driver() records.Driver {
	if k == nil {
		return records.Driver{}
	}
	return records.Driver{WireGuard: wireguard.Peer{PublicKey: k.Public()}}
}

// Equal reports whether the keys are the same; nil means no keys.
func (k *Keys) Equal(o *Keys) bool {
	if k == nil || o == nil {
		return k == o
	}
	return k.Private() == o.Private() && k.Preshared() == o.Preshared()
}

// ReadKeys returns the keys of a gateway in a cluster; nil if there are none.
func ReadKeys(ctx context.Context, c *kube.Cluster, id records.GatewayID) (*Keys, error) {
	object, err := kube.Find[*corev1.Secret](ctx, c, id.KeysName())
	if object == nil || err != nil {
		return nil, err
	}
	return DecodeKeys(object)
}

// DecodeKeys decodes the keys in a Secret.
func DecodeKeys(object *corev1.Secret) (*Keys, error) {
	var k Keys
	var err error
	if k.Private, err = decodeKey(object, wireguard.PrivateKey); err != nil {
		return nil, err
	}
	k.Created, _ = time.Parse(time.RFC3339, string(object.Data[records.CreatedKey])) // informational only
	k.Preshared, err = decodeKey(object, wireguard.PresharedKey)
	return &k, err
}

// decodeKey decodes one key. Its error does not quote the contents.
func decodeKey(object *corev1.Secret, name string) (Secret, error) {
	if key, err := wgtypes.ParseKey(string(object.Data[name])); err == nil {
		return Hide(key), nil
	}
	return nil, hint.With(
		fmt.Errorf("read Secret %s/%s: %s is no WireGuard key", object.Namespace, object.Name, name),
		"delete the Secret, then connect again: new keys are made")
}

// CompleteKeys returns the keys of all gateways of a cluster: existing ones, and new ones for missing ones (nil). A
// private key stays with its gateway. The preshared key is the same for all gateways; nil: a new one.
func CompleteKeys(found []*Keys, preshared Secret) (all []Keys, err error) {
	if preshared == nil {
		made, err := wgtypes.GenerateKey()
		if err != nil {
			return nil, fmt.Errorf("make a preshared key: %w", err)
		}
		preshared = Hide(made)
	}
	for _, have := range found {
		if have == nil {
			made, err := NewKeys(nil)
			if err != nil {
				return nil, err
			}
			have = &made
		}
		all = append(all, Keys{Private: have.Private, Preshared: preshared, Created: have.Created})
	}
	return all, nil
}

// ID identifies the keys, as wireguard.KeyID; "" for nil.
func (k *Keys) ID() string {
	if k == nil {
		return ""
	}
	return wireguard.KeyID(k.Public(), k.Preshared())
}

// PresharedID identifies a preshared key by a hash, which is safe to show: the key has 32 random bytes.
func PresharedID(preshared Secret) string {
	key := preshared()
	sum := sha256.Sum256(key[:])
	return hex.EncodeToString(sum[:])
}

// NewKeys generates a private key and combines it with the given preshared key; nil: none yet.
func NewKeys(preshared Secret) (Keys, error) {
	private, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		return Keys{}, fmt.Errorf("make a private key: %w", err)
	}
	return Keys{Private: Hide(private), Preshared: preshared, Created: time.Now().UTC().Truncate(time.Second)}, nil
}

// KeysMeta returns name, namespace and labels of a gateway's Secret.
func KeysMeta(namespace string, id records.GatewayID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: id.KeysName(), Namespace: namespace, Labels: id.Identity(records.ComponentPeering).Labels()}
}

// KeysObject returns the Secret of a gateway.
func KeysObject(namespace string, id records.GatewayID, k Keys) *corev1.Secret {
	object := &corev1.Secret{
		ObjectMeta: KeysMeta(namespace, id),
		Type:       corev1.SecretTypeOpaque,
		// base64, as printed by wg(8), inside the API's own base64: a mounted file is text.
		Data: map[string][]byte{
			wireguard.PrivateKey:   []byte(k.Private().String()),
			wireguard.PresharedKey: []byte(k.Preshared().String()),
		},
	}
	if !k.Created.IsZero() {
		object.Data[records.CreatedKey] = []byte(k.Created.Format(time.RFC3339))
	}
	return object
}
