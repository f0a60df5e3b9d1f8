package wireguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/wireguard"
)

// TestKeyThatIsNotClamped: a key from any source of 32 bytes is configured once, though WireGuard changes its bits.
func TestKeyThatIsNotClamped(t *testing.T) {
	dir := t.TempDir()
	key := newKey(t)
	key[0], key[31] = key[0]|7, key[31]|128
	for _, name := range []string{wireguard.PrivateKey, wireguard.PresharedKey} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(key.String()), 0o600))
	}
	d, err := New(dir)
	require.NoError(t, err)
	forEachImplementation(t, func(t *testing.T, p *pair) {
		p.clientConfig.PrivateKey = d.private
		for _, want := range []bool{true, false} {
			if changed := p.client.apply(p.clientDevice, p.clientConfig); changed != want {
				t.Errorf("changed: %t, want %t", changed, want)
			}
		}
	})
}

func TestReadKeys(t *testing.T) {
	dir := t.TempDir()
	if _, err := New(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty folder: %v", err)
	}
	for _, name := range []string{wireguard.PrivateKey, wireguard.PresharedKey} {
		key, err := wgtypes.GenerateKey()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(key.String()+"\n"), 0o600))
	}
	d, err := New(dir)
	if err != nil || d.private.IsZero() || d.preshared.IsZero() {
		t.Errorf("keys %v, %v", d, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, wireguard.PrivateKey), []byte("not a key"), 0o600))
	if _, err := New(dir); err == nil || strings.Contains(err.Error(), "not a key") {
		t.Errorf("damaged key: %v: want an error that does not show it", err)
	}
}
