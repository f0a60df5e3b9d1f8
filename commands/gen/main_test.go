package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// committed is where the generated reference lies in the tree.
const committed = "../../docs/cli"

// security is the page with the table of rights.
const security = "../../docs/security.md"

func TestReferenceIsFresh(t *testing.T) {
	folder := t.TempDir()
	if err := run([]string{"markdown", folder}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pages(t, folder), pages(t, committed)); diff != "" {
		t.Errorf("docs/cli does not describe the commands: run make generate (-want +got):\n%s", diff)
	}
}

func TestRightsAreFresh(t *testing.T) {
	text, err := os.ReadFile(security)
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"rights", page}); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(fresh), string(text)); diff != "" {
		t.Errorf("%s does not have the roles: run make generate (-want +got):\n%s", security, diff)
	}
}

func TestMarkdownRemovesPagesOfCommandsThatAreGone(t *testing.T) {
	folder := t.TempDir()
	gone, other := filepath.Join(folder, "liqoctl_gone.md"), filepath.Join(folder, "README.md")
	for _, page := range []string{gone, other} {
		if err := os.WriteFile(page, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run([]string{"markdown", folder}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", gone, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

func TestManualPages(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man")
	if err := run([]string{"man", folder}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "liqoctl-network-connect.1")); err != nil {
		t.Error(err)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"markdown"}, {"html", t.TempDir()}, {"rights", "main.go"}} {
		if err := run(args); err == nil {
			t.Errorf("run %q: no error", args)
		}
	}
}

// pages returns the generated pages in a folder, by name.
func pages(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasPrefix(entry.Name(), "liqoctl") {
			return err
		}
		content, err := os.ReadFile(path)
		all[entry.Name()] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
