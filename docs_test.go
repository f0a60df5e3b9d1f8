package liqonet_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/records"
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

// userWords is the number of words that all pages for users have at most.
const userWords = 16500

// budgets is the number of words that each page for users has at most. Readers look for one answer: who adds a
// sentence removes another one.
var budgets = map[string]int{
	"README.md":                 700,
	"docs/addresses.md":         730,
	"docs/architecture.md":      840,
	"docs/availability.md":      290,
	"docs/boot-guard.md":        300,
	"docs/clouds/aks.md":        250,
	"docs/clouds/eks.md":        420,
	"docs/clouds/gke.md":        250,
	"docs/coming-from-liqo.md":  500,
	"docs/connect.md":           950,
	"docs/expose.md":            300,
	"docs/faq.md":               330,
	"docs/gitops.md":            400,
	"docs/high-availability.md": 700,
	"docs/install.md":           700,
	"docs/limits.md":            480,
	"docs/many-clusters.md":     420,
	"docs/monitoring.md":        1250,
	"docs/mtu.md":               400,
	"docs/network-plugins.md":   950,
	"docs/on-premises.md":       370,
	"docs/performance.md":       380,
	"docs/requirements.md":      700,
	"docs/security.md":          1650,
	"docs/services.md":          720,
	"docs/troubleshooting.md":   1550,
	"docs/upgrade.md":           650,
}

// TestUserPages: pages for users keep their budgets of words, have each setting of a peering, and no decisions, tests
// or earlier releases. Pages about clouds begin with the fact that they were not run.
func TestUserPages(t *testing.T) {
	forbidden := regexp.MustCompile(`decisions/|[Dd]ecision \d|\bTest[A-Z]|(?i:\b(?:earlier|previous|former) (?:release|version))`)
	pages, texts, total := []string{"README.md"}, []string{}, 0
	for _, pattern := range []string{"docs/*.md", "docs/clouds/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		texts = append(texts, string(text))
		words := len(strings.Fields(string(text)))
		total += words
		if budget, found := budgets[page]; !found {
			t.Errorf("%s has no budget of words", page)
		} else if words > budget {
			t.Errorf("%s has %d words, its budget is %d", page, words, budget)
		}
		for _, found := range forbidden.FindAllString(string(text), -1) {
			t.Errorf("%s has %q, which is for contributors", page, found)
		}
		_, first, _ := strings.Cut(string(text), "\n\n")
		if filepath.Dir(page) == filepath.Join("docs", "clouds") && !strings.HasPrefix(first, "**Not run on ") {
			t.Errorf("%s does not begin with the fact that it was not run", page)
		}
	}
	for _, g := range records.GatewaySettingTable() {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "--"+g.Flag) }) {
			t.Errorf("no page for users has --%s", g.Flag)
		}
	}
	for page := range budgets {
		if !slices.Contains(pages, page) {
			t.Errorf("%s has a budget and does not exist", page)
		}
	}
	if total > userWords {
		t.Errorf("all pages for users have %d words, more than %d", total, userWords)
	}
}
