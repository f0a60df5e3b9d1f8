// Package liqonet_test holds the rules that concern the module as a whole.
package liqonet_test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "liqonet.io/liqonet/"

// rule says what a package and its subpackages must not import, directly or through others.
type rule struct {
	packages  string   // a path pattern of package go list, below the module
	forbidden []string // import paths, and all below them but for a path that ends in "!"
	reason    string
}

// outside are the packages of the operations that run outside the clusters, those that import others first.
var outside = []string{
	module + "internal/peering", module + "internal/peering/expose", module + "internal/peering/removal", module + "internal/inspect/status",
	module + "internal/addresses", module + "internal/peering/plan", module + "internal/inventory", module + "internal/pathtest",
	module + "internal/inspect/diagnose", module + "internal/inspect/report", module + "internal/inspect/trace",
}

// rules keep imports in one direction: cmd, commands, internal/helper and those outside the clusters, then netops,
// ipam, templates and internal/cluster.
var rules = []rule{
	{"...", []string{"k8s.io/kubernetes"},
		"it is the servers' code, without a promise to importers: only the lab, a module of its own, builds it"},
	{"netops/...", []string{"k8s.io", "sigs.k8s.io"},
		"the kernel of a namespace is brought into a state, whoever wants it: no Kubernetes"},
	{"netops/...", []string{module + "ipam", module + "templates", module + "internal", module + "commands"},
		"it is used by them, and by anything else that has a wanted state"},
	{"netops/...", []string{"github.com/spf13", "github.com/pterm"},
		"only commands speak with users"},
	{"netops/nft", []string{module + "netops"},
		"a table is a value of its own, whatever it is for"},
	{"ipam", []string{"k8s.io", "sigs.k8s.io", module},
		"the allocator is pure: internal/inventory knows the cluster"},
	{"ipam/translate", []string{"k8s.io/client-go", module + "internal/cluster"},
		"reflection asks it from a process that has clients of its own"},
	{"ipam/...", []string{module + "netops", module + "templates", module + "commands", "github.com/spf13", "github.com/pterm"},
		"addresses are decided without the kernel, the manifests and the user"},
	{"templates/...", []string{module + "netops", module + "ipam", module + "commands", module + "internal/cluster", "k8s.io/client-go/kubernetes"},
		"rendering is pure: values in, objects out"},
	{"templates/...", []string{"github.com/spf13", "github.com/pterm"},
		"only commands speak with users"},
	{"internal/cidr", []string{"k8s.io", module},
		"it is arithmetic, which every package may use"},
	{"internal/wireguard", []string{"k8s.io", module},
		"it is names, which every package may use"},
	{"internal/hint", []string{"k8s.io", module},
		"it adds to errors, whosever they are"},
	{"internal/records", []string{"k8s.io", module + "netops", module + "ipam", module + "templates", module + "internal/cluster"},
		"records are what the others agree on: they depend on none of them"},
	{"internal/datapath", []string{"k8s.io/client-go", module + "ipam", module + "templates", module + "internal/cluster", module + "internal/helper", module + "commands"},
		"it is pure: records in, states out, for helpers and for plans"},
	{"internal/cluster", slices.Concat(outside, []string{module + "netops", module + "ipam", module + "internal/helper", module + "commands"}),
		"it speaks with an API server, and leaves the meaning to its users"},
	{"internal/inspect/status", []string{module + "netops", module + "internal/peering", module + "internal/helper", module + "commands", "github.com/spf13/viper", "github.com/pterm"},
		"it looks, and has no part in what is changed"},
	{"internal/peering/expose", []string{module + "netops", module + "internal/peering/removal", module + "internal/peering!", module + "internal/helper", module + "commands", "github.com/spf13/viper", "github.com/pterm"},
		"a host is a part of a peering that stands"},
	{"internal/peering/removal", []string{module + "netops", module + "internal/addresses", module + "internal/inspect/status", module + "internal/peering!", module + "internal/helper", module + "commands", "github.com/spf13/viper", "github.com/pterm"},
		"it works whatever else is broken"},
	{"internal/pathtest", []string{module + "netops", module + "internal/peering/removal", module + "internal/inspect/status", module + "internal/peering", module + "internal/helper", module + "commands", "github.com/spf13/viper", "github.com/pterm"},
		"it looks at what crosses, whatever others say of it"},
	{"internal/inspect/diagnose", []string{module + "netops", module + "internal/peering/removal", module + "internal/peering", module + "internal/helper", module + "commands", "github.com/spf13/viper", "github.com/pterm"},
		"it judges what others report, and has no part in what is changed"},
	{"internal/inspect/report", []string{module + "netops", module + "internal/peering/removal", module + "internal/peering", module + "internal/helper", module + "commands", "github.com/spf13/viper", "github.com/pterm"},
		"it collects what others know, and changes nothing"},
	{"internal/inspect/trace", []string{module + "internal/peering/removal", module + "internal/peering", module + "internal/helper", module + "commands", "github.com/spf13/viper", "github.com/pterm"},
		"it follows packets, and has no part in what is changed"},
	{"internal/junit", []string{"k8s.io", module},
		"it is a format, whatever is reported"},
	{"internal/pathtest/probe", []string{"k8s.io", module},
		"it runs in pods that know neither the cluster nor the records"},
	{"internal/addresses", []string{module + "netops", module + "internal/peering", module + "internal/helper", module + "commands", "github.com/spf13/viper", "github.com/pterm"},
		"it decides which ranges are used, for whichever operation"},
	{"internal/peering/plan", []string{module + "netops", module + "internal/peering", module + "internal/helper", module + "commands", "github.com/spf13/viper", "github.com/pterm"},
		"it runs stages and compares, whatever is done in them"},
	{"internal/inventory", []string{module + "netops", module + "internal/peering", module + "internal/helper", module + "commands", "github.com/spf13/viper", "github.com/pterm"},
		"it reads what a cluster holds, and leaves what should be to its users"},
	{"internal/peering", []string{module + "netops", module + "internal/helper", module + "commands", "github.com/spf13/viper", "github.com/pterm"},
		"the steps run outside the clusters, on any system, and print nothing"},
	{"internal/helper", slices.Concat(outside, []string{module + "commands", "github.com/spf13/viper", "github.com/pterm"}),
		"the helpers follow the records, not the command line"},
	{"internal/image", []string{"k8s.io", module + "netops", module + "ipam", module + "templates", module + "commands"},
		"an image is a binary in an archive"},
}

// testbed is imported only by tests, by its own packages and by the module bench.
const testbed = module + "internal/testbed"

func TestForbiddenImports(t *testing.T) {
	packages := list(t)
	for _, p := range packages {
		for _, dep := range p.Deps {
			if below(dep, testbed) && !below(p.ImportPath, testbed) {
				t.Errorf("%s imports %s: it is for tests and the module bench only", p.ImportPath, dep)
			}
		}
	}
	for _, r := range rules {
		known := false
		for _, p := range packages {
			if !r.covers(p.ImportPath) {
				continue
			}
			known = true
			for _, dep := range p.Deps {
				if r.forbids(p.ImportPath, dep) {
					t.Errorf("%s imports %s: %s", p.ImportPath, dep, r.reason)
				}
			}
		}
		if !known {
			t.Errorf("no packages in %s", r.packages)
		}
	}
}

// covers reports whether the rule is for a package.
func (r rule) covers(importer string) bool {
	root, subpackages := strings.CutSuffix(module+r.packages, "...")
	return importer == strings.TrimSuffix(root, "/") || subpackages && strings.HasPrefix(importer, root)
}

// shared is what all packages may import: it is pure, and imports none of them.
var shared = []string{module + "internal/cidr", module + "internal/wireguard"}

// forbids reports whether the rule keeps importer from dep. The packages that the rule is for may import each
// other.
func (r rule) forbids(importer, dep string) bool {
	own := module + strings.TrimSuffix(strings.TrimSuffix(r.packages, "..."), "/")
	if dep == importer || slices.Contains(shared, dep) || strings.HasSuffix(r.packages, "...") && below(dep, own) {
		return false
	}
	for _, path := range r.forbidden {
		if below(dep, path) {
			return true
		}
	}
	return false
}

// below reports whether a package is at or below an import path, or at it if the path ends in "!".
func below(dep, path string) bool {
	if exact, ok := strings.CutSuffix(path, "!"); ok {
		return dep == exact
	}
	return dep == strings.TrimSuffix(path, "/") || strings.HasPrefix(dep, strings.TrimSuffix(path, "/")+"/")
}

// places are the files, or the folder, below which alone a dependency is imported: it can be replaced there.
var places = map[string]string{
	"github.com/spf13/cobra": "commands/",
	"github.com/spf13/viper": "commands/cli/settings.go",
	"github.com/pterm/pterm": "commands/ui/terminal.go",
}

func TestImportedInOnePlace(t *testing.T) {
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	packages := list(t)
	for dep, place := range places {
		for _, p := range packages {
			for _, file := range p.importers(t, dep) {
				if !strings.HasPrefix(file, filepath.Join(root, place)) {
					t.Errorf("%s imports %s, which is for %s alone", file, dep, place)
				}
			}
		}
	}
}

// importers returns the package's files that import dep.
func (p listed) importers(t *testing.T, dep string) []string {
	t.Helper()
	var files []string
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			if spec.Path.Value == strconv.Quote(dep) {
				files = append(files, path)
			}
		}
	}
	return files
}

// listed is what go list tells of a package.
type listed struct {
	Dir, ImportPath string
	GoFiles         []string
	Deps            []string
}

// list returns all packages of the module.
func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=Dir,ImportPath,GoFiles,Deps", "./...")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("%s: %v\n%s", cmd, err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
