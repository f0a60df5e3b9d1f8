package buildinfo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
)

func TestRelease(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3":                             true,
		"v0.1.0-rc.1":                        true,
		"dev":                                false,
		"":                                   false,
		"1.2.3":                              false,
		"v1.2.3+dirty":                       false,
		"v0.0.0-20261121101400-5c4a8d7cc1f0": false,
	} {
		if got := (Info{Version: version}).Release(); got != want {
			t.Errorf("Release of %q = %t, want %t", version, got, want)
		}
	}
}

func TestComplete(t *testing.T) {
	build := &debug.BuildInfo{
		Main:     debug.Module{Version: "v1.0.0"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "5c4a8d7"}},
	}
	for _, c := range []struct{ linked, module, want string }{
		{"", "v1.0.0", "v1.0.0"},
		{"v2.0.0", "v1.0.0", "v2.0.0"}, // the linker's word counts more
		{"", "(devel)", ""},
		{"", "v0.0.0-20261121101400-5c4a8d7cc1f0+dirty", ""},
	} {
		build.Main.Version = c.module
		info := Info{Version: c.linked}
		info.complete(build)
		if info.Version != c.want || info.Commit != "5c4a8d7" {
			t.Errorf("linked %q, module %q: got %+v, want version %q", c.linked, c.module, info, c.want)
		}
	}
}

func TestReadHasAVersion(t *testing.T) {
	info := Read()
	if info.Version == "" || info.Go == "" || info.Platform == "" {
		t.Errorf("incomplete: %+v", info)
	}
}

// TestLinkedVariables: the linker ignores names that do not exist, and a release would have no default image.
func TestLinkedVariables(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "buildinfo.go", nil, 0)
	require.NoError(t, err)
	var declared []string
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			for _, name := range s.(*ast.ValueSpec).Names {
				declared = append(declared, name.Name)
			}
		}
	}
	linked := regexp.MustCompile(`liqonet\.io/liqonet/internal/buildinfo\.(\w+)=`)
	for _, path := range []string{"../../Makefile", "../../.goreleaser.yaml"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var names []string
		for _, m := range linked.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
			if !slices.Contains(declared, m[1]) {
				t.Errorf("%s sets %s, which is no variable of this package: %v", path, m[1], declared)
			}
		}
		slices.Sort(names)
		if want := []string{"repository", "version"}; !slices.Equal(names, want) {
			t.Errorf("%s sets %v, want %v", path, names, want)
		}
	}
}

// TestNoRepositoryByDefault: only the linker sets one.
func TestNoRepositoryByDefault(t *testing.T) {
	if got := Read().Repository; got != "" {
		t.Errorf("repository %q", got)
	}
}
