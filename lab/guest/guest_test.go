package guest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/progress"
	"liqonet.io/liqonet/lab/require"
)

// TestMain is PID 1 of the tests' guests, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == InitCommand {
		fmt.Fprintln(os.Stderr, Init(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// options are those of a guest that runs a shell script.
func options(t *testing.T, script string) (Options, *bytes.Buffer) {
	t.Helper()
	kernel, err := EnsureKernel(t.Context(), progress.New(t.Output()))
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	var stdout bytes.Buffer
	return Options{
		Kernel: kernel, Init: self, Argv: []string{"sh", "-ec", script}, Dir: t.TempDir(),
		Env: []string{"PATH=" + os.Getenv("PATH"), "GREETING=hello"}, Stdout: &stdout, Stderr: t.Output(),
	}, &stdout
}

func run(t *testing.T, o Options) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	code, err := Run(ctx, o)
	require.NoError(t, err)
	return code
}

func TestDriversAreThere(t *testing.T) {
	o, out := options(t, `
		ip link add wg0 type wireguard
		ip link add gnv0 type geneve external
		ip link add vx0 type vxlan external dstport 0
		ip link add br0 type bridge
		ip link add veth0 type veth peer name veth1
		ip tuntap add tun0 mode tun
		ip nexthop add id 1 blackhole
		nft 'table ip t { chain c { type nat hook postrouting priority 0; ip saddr 10.0.0.0/8 masquerade; }; }'
		ls /sys/class/net | tr '\n' ' '`)
	if code := run(t, o); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if got, want := out.String(), "br0 gnv0 lo tun0 veth0 veth1 vx0 wg0 "; got != want {
		t.Errorf("links %q, want %q", got, want)
	}
}

func TestFolderAndEnvironment(t *testing.T) {
	o, out := options(t, `cat file; echo "$GREETING"; touch "$TMPDIR/written"; ! touch file 2>/dev/null`)
	require.NoError(t, os.WriteFile(filepath.Join(o.Dir, "file"), []byte("from the machine\n"), 0o644))
	if code := run(t, o); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got, want := out.String(), "from the machine\nhello\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

func TestExitCodes(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 137} {
		o, _ := options(t, script)
		if got := run(t, o); got != want {
			t.Errorf("%s: exit code %d, want %d", script, got, want)
		}
	}
}

func TestOutputComesWhole(t *testing.T) {
	o, out := options(t, "seq 300000; printf end")
	var want strings.Builder
	for i := range 300000 {
		fmt.Fprintln(&want, i+1)
	}
	want.WriteString("end")
	run(t, o)
	if sha256.Sum256(out.Bytes()) != sha256.Sum256([]byte(want.String())) {
		t.Errorf("%d bytes came, want %d with other content", out.Len(), want.Len())
	}
}

func TestVirtualTime(t *testing.T) {
	o, out := options(t, "cut -d. -f1 /proc/uptime; sleep 7200; cut -d. -f1 /proc/uptime")
	o.VirtualTime = true
	begin := time.Now()
	run(t, o)
	var before, after int
	if _, err := fmt.Sscan(out.String(), &before, &after); err != nil {
		t.Fatal(err)
	}
	if slept := after - before; slept < 7200 || slept > 7260 {
		t.Errorf("two hours were %d seconds", slept)
	}
	if took := time.Since(begin); took > 3*time.Minute {
		t.Errorf("two hours took %v", took)
	}
}

func TestProgramThatIsMissing(t *testing.T) {
	o, _ := options(t, "")
	o.Argv = []string{"no-such-program"}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("error %v, want one that names the program", err)
	}
}

func TestPanicIsAnError(t *testing.T) {
	o, _ := options(t, "echo c >/proc/sysrq-trigger")
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("error %v, want the console of a panic", err)
	}
}

// TestEndIsAtOnce ends a guest early: nothing of it is left.
func TestEndIsAtOnce(t *testing.T) {
	o, _ := options(t, "echo ready; sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	o.Stdout = writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	begin := time.Now()
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if took := time.Since(begin); took > 3*time.Minute {
		t.Errorf("the end took %v", took)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range processes {
		line, _ := os.ReadFile(file)
		if bytes.Contains(line, []byte(o.Init)) && bytes.Contains(line, []byte("rootfstype=hostfs")) {
			t.Errorf("still runs: %q", line)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestAbortAfterTheAnswer checks that a kernel that aborts while it switches itself off is no error, and a kernel that
// ends without an answer is.
func TestAbortAfterTheAnswer(t *testing.T) {
	for script, want := range map[string]string{
		`printf '{"Code":7}' >&5; kill -ABRT $$`: "",
		`kill -ABRT $$`:                          "guest ended without a result",
	} {
		kernel := filepath.Join(t.TempDir(), "linux")
		require.NoError(t, os.WriteFile(kernel, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
		code, err := Run(t.Context(), Options{Kernel: kernel})
		switch {
		case want == "" && (err != nil || code != 7):
			t.Errorf("%s: code %d, %v", script, code, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}
