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

	"liqonet.io/liqonet/internal/testbed/require"
)

const module = "liqonet.io/liqonet/"

// rule lists the packages that a package and its subpackages must not import, directly or through others.
type rule struct {
	packages  string   // a path pattern of package go list, below the module
	forbidden []string // import paths, and all below them but for a path that ends in "!"
	reason    string
}

// outside are the families of packages that run outside the clusters.
var outside = []string{
	module + "internal/peering", module + "internal/inspect", module + "internal/pathtest",
	module + "internal/inventory", module + "internal/progress", module + "internal/observe",
}

// terminal are the libraries of the command line.
var terminal = []string{"github.com/spf13/cobra", "github.com/spf13/viper", "github.com/pterm"}

// inCluster are the packages that run in clusters, and the commands.
var inCluster = []string{module + "netops", module + "internal/helper", module + "commands"}

// rules hold imports in one direction: cmd, commands, then the operations outside the clusters and internal/helper,
// then netops, ipam, templates and internal/kube. The drawing is in docs/contributing/design.md.
var rules = []rule{
	{"...", []string{"k8s.io/kubernetes"},
		"servers' code has no compatibility promise to importers: only the lab, a separate module, builds it"},
	{"commands/cli", []string{module + "commands/network", module + "commands/ipam", module + "commands/image", module + "commands/incluster"},
		"commands import what they share"},
	{"commands/ui", []string{module + "commands/", module + "internal/peering", module + "internal/inspect", module + "internal/kube"},
		"it prints values, and knows no command and no operation"},
	{"netops/...", []string{"k8s.io", "sigs.k8s.io"},
		"kernel state has nothing to do with Kubernetes"},
	{"netops/...", slices.Concat(terminal, []string{module + "ipam", module + "templates", module + "internal", module + "commands"}),
		"they import it, as any program with a desired state can"},
	{"netops", []string{module + "netops/kernel"},
		"states are values, without a kernel"},
	{"netops/membership", []string{module + "netops/kernel", module + "netops/tunnel", module + "netops/nft", "github.com/"},
		"membership is pure: messages in, standings out"},
	{"netops/nft", []string{module + "netops"},
		"a table is a value, independent of its use"},
	{"ipam", []string{"k8s.io", "sigs.k8s.io", module},
		"the allocator is pure: internal/inventory reads the cluster"},
	{"ipam/translate", []string{"k8s.io/client-go", module + "internal/kube"},
		"other programs import it, with their own clients"},
	{"ipam/choose", []string{"k8s.io/client-go", module + "internal/kube", module + "internal/inventory"},
		"it is pure: ranges and a registry in, reservations and findings out"},
	{"ipam/...", slices.Concat(terminal, []string{module + "netops", module + "templates", module + "commands"}),
		"addresses do not depend on kernels, manifests or the command line"},
	{"templates/...", slices.Concat(terminal, []string{
		module + "netops", module + "ipam", module + "commands", module + "internal/kube", "k8s.io/client-go/kubernetes",
	}),
		"rendering is pure: values in, objects out"},
	{"internal/cidr", []string{"k8s.io", module},
		"it is arithmetic, for all packages"},
	{"internal/wireguard", []string{"k8s.io", module},
		"it is names, for all packages"},
	{"internal/setting", []string{"k8s.io", module},
		"it is texts, for records and for flags"},
	{"internal/seconds", []string{"k8s.io", module},
		"it is a format of JSON, for all packages"},
	{"internal/hint", []string{"k8s.io", module},
		"it adds to errors of all packages"},
	{"internal/records", []string{"k8s.io", module + "netops", module + "ipam", module + "templates", module + "internal/kube"},
		"records are the interface between the other packages"},
	{"internal/datapath", []string{
		"k8s.io/client-go", module + "ipam", module + "templates", module + "internal/kube", module + "internal/helper", module + "commands",
	},
		"it is pure: records in, states out, for helpers and for plans"},
	{"internal/serving", []string{
		"k8s.io", module + "ipam", module + "netops", module + "templates", module + "internal/kube", module + "internal/helper", module + "commands",
	},
		"it is pure: records in, a choice of peerings out"},
	{"internal/kube/...", slices.Concat(outside, inCluster, []string{module + "ipam"}),
		"it communicates with an API server, and does not know what objects mean"},
	{"internal/peering/...", slices.Concat(inCluster, terminal),
		"operations run on any system, and print nothing"},
	{"internal/peering", []string{module + "internal/inspect/diagnose", module + "internal/inspect/report", module + "internal/inspect/trace"},
		"changes do not depend on diagnosis"},
	{"internal/peering/expose", []string{module + "internal/peering!", module + "internal/peering/removal"},
		"it changes one field of an existing peering"},
	{"internal/peering/removal", []string{module + "internal/peering!", module + "internal/inspect"},
		"removal works when everything else is broken"},
	{"internal/inspect/...", slices.Concat(terminal, []string{module + "internal/peering", module + "internal/helper", module + "commands"}),
		"inspection changes nothing"},
	{"internal/observe", slices.Concat(inCluster, terminal, []string{module + "internal/inspect", module + "internal/inventory", module + "internal/peering"}),
		"what was read is a value, which all that look at a cluster judge"},
	{"internal/observe/read", slices.Concat(inCluster, terminal, []string{module + "internal/inspect", module + "internal/peering"}),
		"it reads, and judges nothing"},
	{"internal/inspect/status", []string{module + "netops"}, "it builds on every system"},
	{"internal/inspect/report", []string{module + "netops"}, "it builds on every system"},
	{"internal/pathtest", slices.Concat(inCluster, terminal, []string{module + "internal/peering", module + "internal/inspect"}),
		"it observes packets, independently of what helpers report"},
	{"internal/pathtest/probe", []string{"k8s.io", module},
		"it runs in pods without access to the cluster and the records"},
	{"internal/junit", []string{"k8s.io", module},
		"it is a file format"},
	{"internal/progress", slices.Concat(inCluster, terminal, []string{module + "internal/peering", module + "internal/inspect"}),
		"all operations use it"},
	{"internal/inventory", slices.Concat(inCluster, terminal, []string{module + "internal/peering", module + "internal/inspect"}),
		"it reads what a cluster has, and does not judge it"},
	{"internal/helper/cache", []string{module + "netops", module + "internal/serving", module + "internal/datapath"},
		"it stores objects, and does not decide what follows from them"},
	{"internal/helper/claim", []string{module + "netops", module + "internal/serving", module + "internal/datapath"},
		"it needs an API server alone"},
	{"internal/helper/publish", []string{module + "netops", module + "internal/serving", module + "internal/datapath"},
		"it writes what the loops have decided"},
	{"internal/helper/...", slices.Concat(outside, terminal, []string{module + "commands"}),
		"helpers follow the records, not the command line"},
	{"internal/helper/node", []string{module + "internal/helper/gateway"},
		"nodes and gateways agree on records and echoes alone"},
	{"internal/helper/gateway", []string{module + "internal/helper/node"},
		"nodes and gateways agree on records and echoes alone"},
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

// places are the files or folders that alone import a dependency, or packages below it: it can be replaced there.
var places = map[string][]string{
	"github.com/spf13/cobra": {"commands/"},
	"github.com/spf13/viper": {"commands/cli/settings.go"},
	"github.com/pterm/pterm": {"commands/ui/terminal.go"},
	// Only the driver and the code that makes keys know the protocol, and only the start of a gateway knows the driver.
	"golang.zx2c4.com/wireguard":       {"netops/tunnel/wireguard/", "internal/inventory/keys.go", "internal/testbed/"},
	module + "netops/tunnel/wireguard": {"internal/helper/gateway/gateway.go"},
	module + "netops/tunnel/plain":     {"internal/helper/gateway/gateway.go", "internal/helper/gateway/senders.go"},
}

func TestImportedInOnePlace(t *testing.T) {
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	packages := list(t)
	for dep, only := range places {
		used := false
		for _, p := range packages {
			for _, file := range p.importers(t, dep) {
				used = true
				if !slices.ContainsFunc(only, func(place string) bool { return below(file, filepath.Join(root, place)) }) {
					t.Errorf("%s imports %s, which is for %s alone", file, dep, strings.Join(only, " and "))
				}
			}
		}
		if !used {
			t.Errorf("nothing imports %s", dep)
		}
	}
}

// TestDecisionsArePure checks that what decides makes no request, and depends on no clock and no chance.
func TestDecisionsArePure(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath != module+"internal/peering/desired" {
			continue
		}
		for _, dep := range []string{"context", "time", "math/rand", "crypto", "os", "sync", "k8s.io/client-go"} {
			for _, file := range p.importers(t, dep) {
				t.Errorf("%s imports %s", file, dep)
			}
		}
		return
	}
	t.Error("no package desired")
}

// importers returns the package's files that import dep or a package below it.
func (p listed) importers(t *testing.T, dep string) []string {
	t.Helper()
	var files []string
	for _, name := range p.GoFiles {
		file := filepath.Join(p.Dir, name)
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range f.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); below(path, dep) {
				files = append(files, file)
			}
		}
	}
	return files
}

// listed is a package in the output of go list.
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
