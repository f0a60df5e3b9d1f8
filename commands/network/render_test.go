package network

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/testbed/require"
)

func secretNamed(name, key string) map[string]any {
	return map[string]any{"kind": "Secret", "metadata": map[string]any{"name": name}, "stringData": map[string]any{"privateKey": key}}
}

// TestManifestsReplaceFiles: keys are readable only by their owner, whatever file existed before, and are written to no
// other place; only complete files remain.
func TestManifestsReplaceFiles(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	// The mode of a file after a checkout.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "01-secret-a.yaml"), []byte("old"), 0o644))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, "02-secret-b-c.yaml")))
	m := peering.Manifests{Objects: []map[string]any{secretNamed("a", "new"), secretNamed("b:c", "new")}}
	_, err := writeManifests(dir, m)
	require.NoError(t, err)
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("the keys went where a link led")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("files %v, %v", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		if text, err := os.ReadFile(filepath.Join(dir, e.Name())); info.Mode() != fs.FileMode(0o600) || err != nil || !strings.Contains(string(text), "new") {
			t.Errorf("%s: %s, %q, %v", e.Name(), info.Mode(), text, err)
		}
	}
}

// TestManifestsOfEarlier: manifests of an earlier rendering are reported, because they would be applied with the rest.
func TestManifestsOfEarlier(t *testing.T) {
	dir := t.TempDir()
	_, err := writeManifests(dir, peering.Manifests{Objects: []map[string]any{secretNamed("a", "old"), secretNamed("b", "old")}})
	require.NoError(t, err)
	others, err := writeManifests(dir, peering.Manifests{Objects: []map[string]any{secretNamed("b", "new")}})
	if want := []string{"01-secret-a.yaml", "02-secret-b.yaml"}; err != nil || !slices.Equal(others, want) {
		t.Errorf("others %v, %v; want %v", others, err, want)
	}
}
