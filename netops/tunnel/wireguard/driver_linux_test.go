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
