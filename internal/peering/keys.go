package peering

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
)

// keys are one side's secrets of a peering. They print as nothing.
type keys struct {
	private   wgtypes.Key
	preshared wgtypes.Key // the zero value: none yet
}

// Format implements fmt.Formatter: no verb shows a key.
func (keys) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(keys)") }

// public is what the peer is told.
func (k keys) public() string { return k.private.PublicKey().String() }

// readKeys returns the keys that a cluster holds for a peering; nil where it has none.
func readKeys(ctx context.Context, c *cluster.Cluster, peering string) (*keys, error) {
	name := records.PeeringName(peering)
	secret, err := c.Kube.CoreV1().Secrets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s of cluster %q: %w", c.Namespace, name, c.Context, err)
	}
	var k keys
	if k.private, err = decodeKey(secret, records.PrivateKeyKey); err != nil {
		return nil, err
	}
	k.preshared, err = decodeKey(secret, records.PresharedKeyKey)
	return &k, err
}

// decodeKey reads one key. Its error does not quote what it read.
func decodeKey(secret *corev1.Secret, name string) (wgtypes.Key, error) {
	raw, err := base64.StdEncoding.DecodeString(string(secret.Data[name]))
	if err == nil {
		var key wgtypes.Key
		if key, err = wgtypes.NewKey(raw); err == nil {
			return key, nil
		}
	}
	return wgtypes.Key{}, withHint(
		fmt.Errorf("read Secret %s/%s: %s is no WireGuard key", secret.Namespace, secret.Name, name),
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
	none := wgtypes.Key{}
	switch {
	case s.preshared != none:
	case c.preshared != none:
		s.preshared = c.preshared
	default:
		if s.preshared, err = wgtypes.GenerateKey(); err != nil {
			return keys{}, keys{}, fmt.Errorf("make a preshared key: %w", err)
		}
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
	return keys{private: private}, nil
}

// keysObject is the Secret of one side.
func keysObject(namespace, peering string, k keys) cluster.Object {
	return &corev1.Secret{
		ObjectMeta: peeringMeta(namespace, records.PeeringName(peering), peering),
		Type:       corev1.SecretTypeOpaque,
		// base64, as wg(8) prints keys, inside the API's own base64: a mounted file is text.
		Data: map[string][]byte{
			records.PrivateKeyKey:   []byte(k.private.String()),
			records.PresharedKeyKey: []byte(k.preshared.String()),
		},
	}
}
