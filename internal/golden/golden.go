// Package golden compares what tests make with files in their folders testdata, which go test -update writes anew. It
// is for tests alone.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Check compares a text with a file, testdata/NAME, and returns what the file holds.
func Check(t *testing.T, name, got string) string {
	t.Helper()
	return File(t, filepath.Join("testdata", name), got)
}

// File is Check for a file elsewhere, such as a page of the documentation.
func File(t *testing.T, path, got string) string {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
	}
	return string(want)
}

// Gone fails for a file that nothing makes any more; -update removes it.
func Gone(t *testing.T, path string) {
	t.Helper()
	if !*update {
		t.Errorf("%s: nothing makes it any more (-update removes it)", path)
	} else if err := os.Remove(path); err != nil {
		t.Error(err)
	}
}
