package main

import (
	"os"
	"path/filepath"
	"testing"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

func TestManualPages(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man")
	require.NoError(t, run([]string{folder}))
	_, err := os.Stat(filepath.Join(folder, "liqoctl-network-connect.1"))
	assert.NoError(t, err)
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"man", t.TempDir()}, {"main.go"}} {
		if err := run(args); err == nil {
			t.Errorf("run %q: no error", args)
		}
	}
}
