package nft

import (
	"regexp"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
)

// namespace is a network namespace of the test's own.
type namespace struct {
	netns.Namespace
	t *testing.T
}

func newNamespace(t *testing.T) namespace {
	t.Helper()
	return namespace{netns.New(t), t}
}

// in is the namespace as a subtest uses it.
func (n namespace) in(t *testing.T) namespace { return namespace{n.For(t), t} }

// nft executes commands of nft(8) within the namespace.
func (n namespace) nft(commands string) string {
	n.t.Helper()
	return n.Feed(commands, "nft", "-f", "-")
}

// list returns a table as nft(8) prints it.
func (n namespace) list(table string) string {
	n.t.Helper()
	return n.Feed("", "nft", "-y", "list", "table", "ip", table)
}

func (n namespace) open() *Conn {
	n.t.Helper()
	c, err := Open(n.FD())
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// newConn returns a namespace and a connection to its tables.
func newConn(t *testing.T) (namespace, *Conn) {
	t.Helper()
	n := newNamespace(t)
	return n, n.open()
}

// observe reads a table, apply makes it as wanted and sees that it is.
func (n namespace) observe(c *Conn, table string) Table {
	n.t.Helper()
	have, err := c.Observe(IP, table)
	require.NoError(n.t, err)
	return have
}

func (n namespace) apply(c *Conn, want Table) Plan {
	n.t.Helper()
	plan := Diff(n.observe(c, want.Name), want)
	if err := c.Apply(plan); err != nil {
		n.t.Fatalf("%v\n%s", err, plan)
	}
	if again := Diff(n.observe(c, want.Name), want); !again.Empty() {
		n.t.Fatalf("after the plan\n%sthere is one more:\n%s", plan, again)
	}
	return plan
}

// plain takes counter values, and differences in white space that have no meaning, from nft text.
func plain(text string) string {
	text = regexp.MustCompile(`counter packets \d+ bytes \d+`).ReplaceAllString(text, "counter")
	text = regexp.MustCompile(`\s+`).ReplaceAllString(text, " ")
	return strings.NewReplacer(" }", "\n}", "; ", ";\n").Replace(text)
}
