package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestManualPages(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man")
	if err := run([]string{folder}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "liqoctl-network-connect.1")); err != nil {
		t.Error(err)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"man", t.TempDir()}, {"main.go"}} {
		if err := run(args); err == nil {
			t.Errorf("run %q: no error", args)
		}
	}
}
