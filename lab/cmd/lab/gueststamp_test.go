package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab/require"
)

// TestStamp: tests have passed if nothing of what decides that has changed. A file of a package that they import, one
// of their testdata, a flag and the guest's kernel do; the folder of the code does not.
func TestStamp(t *testing.T) {
	t.Setenv("LIQONET_LAB_CACHE", t.TempDir())
	dir, skipped := t.TempDir(), filepath.Join(t.TempDir(), "skipped")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	writeCode := func() {
		write("go.mod", "module example.com/x\n\ngo 1.24\n")
		write("netops/nft/nft.go", "package nft\n\nfunc Rule() string { return \"accept\" }\n")
		write("netops/netops.go", "package netops\n\nimport \"example.com/x/netops/nft\"\n\nfunc Rules() string { return nft.Rule() }\n")
		write("netops/netops_test.go", "package netops\n\nimport \"testing\"\n\nfunc TestRules(t *testing.T) { t.Log(Rules()) }\n")
		write("netops/testdata/a.golden", "a")
		write("docs/connect.md", "table ip")
		write("kernel", "6.12")
	}
	writeCode()
	var binary string
	build := func() {
		t.Helper()
		t.Chdir(filepath.Join(dir, "netops"))
		binary = filepath.Join(t.TempDir(), "netops.test")
		out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-trimpath", "-buildvcs=false", "-o", binary).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	build()
	flag := "-test.short=true"
	fails := errors.New("a test failed")
	runs := func(result error) (ran bool) {
		t.Helper()
		argv := []string{binary, "-test.testlogfile=" + filepath.Join(t.TempDir(), "log"), flag}
		err := unlessPassed(skipped, argv, filepath.Join(dir, "kernel"), func() error { ran = true; return result })
		if ran && !errors.Is(err, result) || !ran && err != nil {
			t.Fatal(err)
		}
		return ran
	}
	require.NoError(t, os.WriteFile(skipped, nil, 0o600))
	if !runs(fails) || !runs(nil) {
		t.Fatal("tests that have not passed yet do not run")
	}
	if runs(nil) {
		t.Fatal("tests that passed run again")
	}
	if text, err := os.ReadFile(skipped); err != nil || strings.TrimSpace(string(text)) != "passed before, and nothing has changed since: "+filepath.Join(dir, "netops") {
		t.Errorf("%v, %q", err, text)
	}
	dir = t.TempDir()
	writeCode()
	build()
	if runs(nil) {
		t.Error("the folder of the code counts")
	}
	for what, change := range map[string]func(){
		"a file of an imported package": func() { write("netops/nft/nft.go", "package nft\n\nfunc Rule() string { return \"drop\" }\n"); build() },
		"testdata":                      func() { write("netops/testdata/a.golden", "b") },
		"documentation":                 func() { write("docs/connect.md", "table ip liqonet-boot") },
		"the kernel":                    func() { write("kernel", "6.13") },
		"a flag":                        func() { flag = "-test.short=false" },
		"a variable":                    func() { t.Setenv("LIQONET_TEST_OVERLAYS", "geneve") },
	} {
		change()
		if !runs(nil) || runs(nil) {
			t.Errorf("%s does not count", what)
		}
	}
	skipped = ""
	if !runs(nil) {
		t.Error("tests that passed do not run again when all are asked for")
	}
}
