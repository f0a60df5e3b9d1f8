package nft

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestOtherTables: other tables are neither read nor changed.
func TestOtherTables(t *testing.T) {
	n, c := newConn(t)
	foreign := strings.ReplaceAll(small().String(), "table ip small", "table ip other") +
		strings.ReplaceAll(small().String(), "table ip small", "table inet small")
	n.nft(foreign)
	before := n.Feed("", "nft", "list", "ruleset")
	if have := n.observe(c, "small"); have.Name != "" {
		t.Errorf("read: %s", have)
	}
	n.apply(c, small())
	require.NoError(t, c.Apply(Diff(small(), Table{})))
	assert.Equal(t, "foreign tables", before, n.Feed("", "nft", "list", "ruleset"))
}

// TestObserveWhileChanging observes the table while another connection changes it: the result is always one of the
// states.
func TestObserveWhileChanging(t *testing.T) {
	n := newNamespace(t)
	writer, reader := n.open(), n.open()
	one, two := small(), small()
	two.Sets[0] = NewSet("nodes", parsed.Prefixes("10.0.0.0/8")...)
	two.Chains[1].Rules = two.Chains[1].Rules[1:]
	n.apply(writer, one)
	done := make(chan error, 1)
	go func() {
		for range 100 {
			for _, p := range []Plan{Diff(one, two), Diff(two, one)} {
				if err := writer.Apply(p); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	for reads := 0; ; reads++ {
		select {
		case err := <-done:
			assert.NoError(t, err)
			if reads == 0 {
				t.Error("no read came between")
			}
			return
		default:
		}
		have, err := reader.Observe(IP, "small")
		if err == nil && !Diff(have, one).Empty() && !Diff(have, two).Empty() {
			t.Fatalf("a mixture was read:\n%s", have)
		}
	}
}

// TestOpen connects to the calling thread's namespace, and rejects a file descriptor of another kind.
func TestOpen(t *testing.T) {
	n := newNamespace(t)
	n.apply(n.open(), small())
	n.Inside(func() error {
		c, err := Open(-1)
		if err != nil {
			return err
		}
		have, err := c.Observe(IP, "small")
		if plan := Diff(have, small()); err == nil && !plan.Empty() {
			t.Errorf("another table seen: %s", plan)
		}
		return errors.Join(err, c.Close())
	})
	file, err := os.Open("kernel_test.go")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	if _, err := Open(int(file.Fd())); err == nil {
		t.Error("connected to a file")
	}
}

// TestObserveAgain: the cached table is used until a transaction, and callers get their own copy.
func TestObserveAgain(t *testing.T) {
	n, c := newConn(t)
	n.apply(c, small())
	first := n.observe(c, "small")
	first.Sets[0].Name, first.Chains[0].Name = "spoiled", "spoiled"
	slices.Reverse(first.Chains)
	read := c.last["ip small"].generation
	if plan := Diff(n.observe(c, "small"), small()); !plan.Empty() || c.last["ip small"].generation != read {
		t.Errorf("generation %d, then %d; still to do:\n%s", read, c.last["ip small"].generation, plan)
	}
	n.nft("add table ip foreign")
	n.nft("flush chain ip small guard")
	if plan := Diff(n.observe(c, "small"), small()); plan.Empty() {
		t.Error("a chain that was flushed is observed as it was")
	}
	if other := n.observe(c, "foreign"); other.Name != "foreign" {
		t.Errorf("another table is observed as %q", other.Name)
	}
}
