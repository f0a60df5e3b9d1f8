package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"liqonet.io/liqonet/lab/require"
)

// TestStamp: tests have passed if nothing of what decides that has changed. A file of a package that they import, one
// of their testdata, a flag and the guest's kernel do; the folder of this program does not.
func TestStamp(t *testing.T) {
	t.Setenv("LIQONET_LAB_CACHE", t.TempDir())
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("go.mod", "module example.com/x\n\ngo 1.24\n")
	write("netops/nft/nft.go", "package nft\n\nfunc Rule() string { return \"accept\" }\n")
	write("netops/netops.go", "package netops\n\nimport \"example.com/x/netops/nft\"\n\nfunc Rules() string { return nft.Rule() }\n")
	write("netops/netops_test.go", "package netops\n\nimport \"testing\"\n\nfunc TestRules(t *testing.T) { t.Log(Rules()) }\n")
	write("netops/testdata/a.golden", "a")
	write("lab", "program")
	write("elsewhere/lab", "program")
	write("kernel", "6.12")
	t.Chdir(dir)
	program, flag := filepath.Join(dir, "lab"), "-short"
	now := func() stamp {
		t.Helper()
		command := exec.CommandContext(t.Context(), "go", "test", "-exec="+program+" guest run --", "./netops", flag)
		command.Env = os.Environ()
		s, err := newStamp(t.Context(), command, []string{"./netops", flag}, program, filepath.Join(dir, "kernel"))
		require.NoError(t, err)
		return s
	}
	first := now()
	if first.is() {
		t.Fatal("nothing has passed yet")
	}
	if err := first.set(); err != nil || !now().is() {
		t.Fatalf("what has passed is not known: %v", err)
	}
	program = filepath.Join(dir, "elsewhere", "lab")
	if !now().is() {
		t.Error("the folder of the program counts")
	}
	before := now()
	for what, change := range map[string]func(){
		"a file of an imported package": func() { write("netops/nft/nft.go", "package nft\n\nfunc Rule() string { return \"drop\" }\n") },
		"testdata":                      func() { write("netops/testdata/a.golden", "b") },
		"the kernel":                    func() { write("kernel", "6.13") },
		"the program":                   func() { write("elsewhere/lab", "another") },
		"a flag":                        func() { flag = "-race" },
		"a variable":                    func() { t.Setenv("LIQONET_TEST_OVERLAYS", "geneve") },
	} {
		require.NoError(t, before.set())
		change()
		after := now()
		if after == before {
			t.Errorf("%s does not count", what)
		}
		before = after
	}
}
