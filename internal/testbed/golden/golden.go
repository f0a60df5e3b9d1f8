// Package golden compares what tests make with files in their folders testdata, which go test -update rewrites.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/testbed/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Check compares a text with a file, testdata/NAME, and returns the content of the file.
func Check(t *testing.T, name, got string) string {
	t.Helper()
	return File(t, filepath.Join("testdata", name), got)
}

// File is Check for a file elsewhere, such as a page of the documentation.
func File(t *testing.T, path, got string) string {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, diff)
	}
	return string(want)
}

// Gone fails for a file that no test makes; -update removes it.
func Gone(t *testing.T, path string) {
	t.Helper()
	if !*update {
		t.Errorf("%s: no test makes it (-update removes it)", path)
	} else if err := os.Remove(path); err != nil {
		t.Error(err)
	}
}
