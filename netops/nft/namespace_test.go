package nft

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace of the test's own. It ends with its last file descriptor, so that nothing
// stays behind, however the test ends.
type namespace struct {
	t    *testing.T
	file *os.File
}

func newNamespace(t *testing.T) namespace {
	t.Helper()
	var file *os.File
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("new network namespace, which takes root: %w", err)
		}
		file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return namespace{t, file}
}

// onThread calls f on a thread of its own, which ends with it: its namespace is not to be used again.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// do calls f within the namespace.
func (n namespace) do(f func() error) {
	n.t.Helper()
	err := onThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// run executes a command within the namespace and returns what it prints.
func (n namespace) run(stdin string, command ...string) string {
	n.t.Helper()
	var out []byte
	n.do(func() (err error) {
		cmd := exec.CommandContext(n.t.Context(), command[0], command[1:]...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err = cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s\n%s", strings.Join(command, " "), err, out, stdin)
		}
		return nil
	})
	return string(out)
}

// nft executes commands of nft(8) within the namespace.
func (n namespace) nft(commands string) string {
	n.t.Helper()
	return n.run(commands, "nft", "-f", "-")
}

// list returns a table as nft(8) prints it.
func (n namespace) list(table string) string {
	n.t.Helper()
	return n.run("", "nft", "-y", "list", "table", "ip", table)
}

func (n namespace) open() *Conn {
	n.t.Helper()
	c, err := Open(int(n.file.Fd()))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// observe reads a table, apply makes it as wanted and sees that it is.
func (n namespace) observe(c *Conn, table string) Table {
	n.t.Helper()
	have, err := c.Observe(IP, table)
	if err != nil {
		n.t.Fatal(err)
	}
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
