package liqonet_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
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
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	if len(pages) < 20 {
		t.Fatalf("only %d pages: %q", len(pages), pages)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
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
	require.NoError(t, err)
	for _, found := range heading.FindAllStringSubmatch(string(text), -1) {
		anchor := strings.ReplaceAll(strings.ToLower(found[1]), " ", "-")
		anchor = regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(anchor, "")
		if anchor == place {
			return true
		}
	}
	return false
}

// packageAndTests is a package followed by its tests, as `internal/peering` `TestA`, `TestB`. A name can end in "…".
var packageAndTests = regexp.MustCompile("`([a-z]+(?:/[a-z]+)*(?:/\\.\\.\\.)?)` ((?:`(?:Test|Fuzz)\\w*…?\\w*`(?:, (?:and )?)?)+)")

// TestNamedTestsExist checks that tests that the Makefile and the pages name exist, in the package that a page names.
// The Makefile also has the beginnings of names.
func TestNamedTestsExist(t *testing.T) {
	tests := make(map[string]string) // package: text of its tests
	var all, pages strings.Builder
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		isTest, isPage := strings.HasSuffix(path, "_test.go"), strings.HasSuffix(path, ".md")
		if err != nil || !isTest && !isPage {
			return err
		}
		text, err := os.ReadFile(path)
		if isPage {
			pages.Write(text)
			return err
		}
		tests[filepath.Dir(path)] += string(text)
		all.Write(text)
		return err
	})
	require.NoError(t, err)
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	names := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(makefile), -1)
	onPages := regexp.MustCompile("`(?:Test|Fuzz)\\w+`").FindAllString(pages.String(), -1)
	for _, name := range append(names, onPages...) {
		if !strings.Contains(all.String(), "\nfunc "+strings.Trim(name, "`")) {
			t.Errorf("no test is called %s", name)
		}
	}
	claims := packageAndTests.FindAllStringSubmatch(pages.String(), -1)
	if len(names) < 20 || len(onPages) < 300 || len(claims) < 80 {
		t.Errorf("only %d tests in the Makefile, %d on pages, %d packages with tests", len(names), len(onPages), len(claims))
	}
	for _, claim := range claims {
		text, within := tests[claim[1]], strings.TrimSuffix(claim[1], "...")
		for dir, more := range tests {
			if within != claim[1] && strings.HasPrefix(dir+"/", within) {
				text += more
			}
		}
		for _, name := range regexp.MustCompile(`(?:Test|Fuzz)\w+`).FindAllString(claim[2], -1) {
			if !strings.Contains(text, "\nfunc "+name) {
				t.Errorf("%s has no test %s", claim[1], name)
			}
		}
	}
}
