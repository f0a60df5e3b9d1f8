package main

import (
	"cmp"
	"debug/elf"
	"debug/gosym"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
)

// maxSize is the maximum size of the program for linux/amd64, in bytes: 1 % more than it has.
const maxSize = 43_000_000

// unwanted are prefixes of names of functions that would add thousands of other functions to the program, with the
// reason.
var unwanted = map[string]string{
	"text/template.(*state).evalField": "it keeps each exported method of each type that is reachable",
	"k8s.io/client-go/informers.":      "helpers follow objects by client-go/tools/cache alone",
	"k8s.io/cli-runtime/":              "internal/kube reads kubeconfigs",
	"sigs.k8s.io/kustomize/":           "nothing here merges by schema",
}

// TestSize builds the program in the same way as releases, and fails if it is too large or contains unwanted functions.
// Then it lists the packages with the most code.
func TestSize(t *testing.T) {
	program := filepath.Join(t.TempDir(), "liqoctl")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(program)
	require.NoError(t, err)
	functions := functionsOf(t, program)
	bytes := make(map[string]uint64) // of code, by package
	for _, f := range functions {
		for begin, why := range unwanted {
			if strings.HasPrefix(f.Name, begin) {
				t.Errorf("%s is linked: %s", f.Name, why)
			}
		}
		bytes[packageOf(f.Name)] += f.End - f.Entry
	}
	t.Logf("%d bytes, %d functions", info.Size(), len(functions))
	if info.Size() > maxSize {
		t.Errorf("want at most %d bytes", maxSize)
	}
	largest := slices.SortedFunc(maps.Keys(bytes), func(a, b string) int { return cmp.Compare(bytes[b], bytes[a]) })
	for _, name := range largest[:10] {
		t.Logf("%9d bytes of code in %s", bytes[name], name)
	}
}

// functionsOf reads the functions of a stripped program from its table for stack traces.
func functionsOf(t *testing.T, program string) []gosym.Func {
	t.Helper()
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	data, err := f.Section(".gopclntab").Data()
	require.NoError(t, err)
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, f.Section(".text").Addr))
	require.NoError(t, err)
	if len(table.Funcs) < 10_000 {
		t.Fatalf("only %d functions found: this reads the table wrongly", len(table.Funcs))
	}
	return table.Funcs
}

// packageOf returns the import path in a function's name.
func packageOf(name string) string {
	slash := strings.LastIndex(strings.SplitN(name, "[", 2)[0], "/") + 1
	last, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + last
}
