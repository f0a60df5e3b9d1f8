package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"liqonet.io/liqonet/lab"
)

// TestMain runs the tests and then evaluates the audit logs of all their clusters: see
// rights_test.go. A run of some of the tests does not fail because of unused rights; -v shows them.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // inTurn limits it
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := m.Run()
	if err := removePrograms(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if testing.Verbose() {
		fmt.Fprint(os.Stdout, rights.table())
	}
	found := rights.judge(!testing.Short() && flag.Lookup("test.skip").Value.String() == "")
	if everyTest() && code == 0 && len(found) > 0 {
		code = 1
	}
	if code != 0 && everyTest() || testing.Verbose() {
		for _, text := range found {
			fmt.Fprintln(os.Stdout, "rights:", text)
		}
	}
	os.Exit(code)
}

// everyTest reports whether all tests of the package run, or those of the short form.
func everyTest() bool {
	for _, name := range []string{"test.run", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return true
}

// long runs a part of a test, except in the short form, which -short chooses: `make test` leaves it to `make
// test-long`.
func long(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	if !testing.Short() {
		t.Run(name, f)
	}
}

// endLab ends a lab with its test, and keeps the audit logs of its API servers.
func endLab(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		if l, err := lab.Open(ctx, name); err == nil {
			if err := rights.collect(ctx, l); err != nil {
				t.Error(err)
			}
		}
		if err := lab.Remove(ctx, name); err != nil {
			t.Error(err)
		}
	})
}
