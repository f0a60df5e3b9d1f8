package wireguard

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/wireguard"
	"liqonet.io/liqonet/netops/tunnel"
)

// Driver opens devices that have the keys of one gateway.
type Driver struct{ private, preshared Secret }

// New reads the keys of a gateway from the folder of its mounted Secret.
func New(folder string) (Driver, error) {
	var d Driver
	for name, into := range map[string]*Secret{wireguard.PrivateKey: &d.private, wireguard.PresharedKey: &d.preshared} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return d, fmt.Errorf("read tunnel keys: %w", err)
		}
		if *into, err = parseSecret(strings.TrimSpace(string(text))); err != nil {
			return d, fmt.Errorf("read tunnel key %s: %w", name, err)
		}
	}
	d.private = d.private.clamped()
	return d, nil
}

// ID identifies the keys, as wireguard.KeyID.
func (d Driver) ID() string {
	private := d.private.reveal()
	return wireguard.KeyID(private.PublicKey().String(), d.preshared.reveal())
}

// Derive implements tunnel.Driver (RFC 5869).
func (d Driver) Derive(label string) [32]byte {
	preshared := d.preshared.reveal()
	key, _ := hkdf.Key(sha256.New, preshared[:], nil, "liqonet "+label, sha256.Size) // it fails for longer keys only
	return [32]byte(key)
}

// Decode implements tunnel.Driver.
func (d Driver) Decode(member any) (any, error) {
	peer, _ := member.(wireguard.Peer) // any other has no key
	key, err := wgtypes.ParseKey(peer.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("peer's public key: %w", err)
	}
	return key, nil
}

// Open implements tunnel.Driver.
func (d Driver) Open(c tunnel.Config, log *slog.Logger, found func()) (tunnel.Tunnel, error) {
	device, err := Open(d.config(c), log, found)
	if err != nil {
		return nil, err
	}
	return opened{device, d}, nil
}

// config adds the keys.
func (d Driver) config(c tunnel.Config) Config {
	public, _ := c.Peer.(wgtypes.Key) // without it, the configuration is invalid
	return Config{Config: c, PrivateKey: d.private, PresharedKey: d.preshared, PublicKey: public}
}

// opened is a device with the driver that opened it.
type opened struct {
	*Device
	driver Driver
}

// Apply implements tunnel.Tunnel.
func (o opened) Apply(c tunnel.Config) (bool, error) { return o.Device.Apply(o.driver.config(c)) }
