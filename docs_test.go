package liqonet_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// TestLinksOfPages: a link to a page or a place in it leads there.
func TestLinksOfPages(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "lab/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 20 {
		t.Fatalf("only %d pages: %q", len(pages), pages)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			target, place, _ := strings.Cut(found[1], "#")
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: link %s: %v", page, found[1], err)
			} else if place != "" && !hasPlace(t, path, place) {
				t.Errorf("%s: link %s: no such heading", page, found[1])
			}
		}
	}
}

// TestPagesInCode: a page that messages and comments name exists.
func TestPagesInCode(t *testing.T) {
	name, found := regexp.MustCompile(`\bdocs/[\w./-]+\.md\b`), 0
	if err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, page := range name.FindAllString(string(text), -1) {
			found++
			if _, err := os.Stat(page); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if found < 5 {
		t.Errorf("only %d pages are named", found)
	}
}

// hasPlace reports whether a page has a heading with that anchor.
func hasPlace(t *testing.T, page, place string) bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range heading.FindAllStringSubmatch(string(text), -1) {
		anchor := strings.ReplaceAll(strings.ToLower(found[1]), " ", "-")
		anchor = regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(anchor, "")
		if anchor == place {
			return true
		}
	}
	return false
}

// TestMakefileNamesTests: each test that the Makefile chooses exists, or some that begin so.
func TestMakefileNamesTests(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	if err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(makefile), -1)
	if len(names) < 20 {
		t.Errorf("only %d tests: %q", len(names), names)
	}
	for _, name := range names {
		if !strings.Contains(all.String(), "\nfunc "+name) {
			t.Errorf("no test is called %s", name)
		}
	}
}
