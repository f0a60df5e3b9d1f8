//go:build linux

package gateway

import (
	"context"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/wireguard"
)

// TestGatewayWaitsForItsKeys checks that a pod whose copy of the Secret is older than its template waits for the newer
// one, and that it does not start with keys of which its template knows nothing.
func TestGatewayWaitsForItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		mount := func(first byte) {
			key := make([]byte, 32)
			key[0] = first << 3 // a valid private key has its lowest bits cleared
			text := []byte(base64.StdEncoding.EncodeToString(key))
			for _, name := range []string{wireguard.PrivateKey, wireguard.PresharedKey} {
				path := filepath.Join(folder, name)
				require.NoError(t, os.WriteFile(path+".new", text, 0o600))
				require.NoError(t, os.Rename(path+".new", path)) // at once, as the kubelet does
			}
		}
		g := Helper{Env: helper.Env{Log: slog.New(slog.DiscardHandler)}, Keys: folder}
		mount(1)
		old, err := g.openKeys(t.Context())
		require.NoError(t, err)
		mount(2)
		newer, err := g.openKeys(t.Context())
		require.NoError(t, err)
		if old.ID() == newer.ID() {
			t.Fatal("different keys have one identifier")
		}
		mount(1)
		g.KeyID = newer.ID()
		start := time.Now()
		time.AfterFunc(10*time.Second, func() { mount(2) })
		if got, err := g.openKeys(t.Context()); err != nil || got.ID() != newer.ID() || time.Since(start) < 10*time.Second {
			t.Errorf("it started after %s with keys %s, %v", time.Since(start), got.ID(), err)
		}
		g.KeyID = "others"
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := g.openKeys(ctx); err == nil {
			t.Error("it started with other keys")
		}
	})
}
