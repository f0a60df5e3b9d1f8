package pathtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/bench/apiserver"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/inspect/trace/probe"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
)

// jobVariable contains the job of the test binary when it runs as a helper.
const jobVariable = "LIQONET_TEST_HELPER"

// healthAddress is the address of each helper's probes, in its namespace.
const healthAddress = "127.0.0.1:6093"

// job describes a helper: a node's, or, with a peering, a gateway's.
type job struct {
	Socket  string // of its API server
	Node    string
	Peering string
	Number  int // of the gateway
	Pod     string
	PodIP   netip.Addr
	Keys    string // folder
	Epoch   string // folder

	Question *probe.Question // of network trace, instead of a helper's work

	Spoiled string // kind of objects that crash a process which decodes them; "": none
	Never   bool   // instead, their list does not arrive
}

func TestMain(m *testing.M) {
	text := os.Getenv(jobVariable)
	if text == "" {
		watch.DefaultChanSize = 1000 // a watch of the fake API server begins with all objects of a kind
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := runHelper(ctx, text); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// runHelper runs a helper: the code of the product, with another client.
func runHelper(ctx context.Context, text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	if j.Question != nil {
		return j.Question.Run(ctx, os.Stdin, os.Stdout)
	}
	client, err := kubernetes.NewForConfig(apiserver.ClientConfig(j.Socket))
	if err != nil {
		return err
	}
	env := helper.Env{
		Client: client, Namespace: records.DefaultNamespace, HealthAddress: healthAddress,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if j.Spoiled != "" {
		env.Client = spoiled{client, j.Spoiled, j.Never}
	}
	if j.Peering == "" {
		return helper.Node{Env: env, Name: j.Node}.Run(ctx)
	}
	return helper.Gateway{
		Env: env, ID: records.GatewayID{Peering: j.Peering, Number: j.Number}, Pod: j.Pod, PodIP: j.PodIP, Node: j.Node, Keys: j.Keys, Epoch: j.Epoch,
	}.Run(ctx)
}

// process is a helper that runs in a namespace.
type process struct {
	kill   func()
	wait   func() // for its end
	signal func(syscall.Signal)
	log    *helperLog
	pid    int
}

// logged returns how often the helper has logged a text.
func (p process) logged(text string) int { return strings.Count(p.log.String(), text) }

// helperLog is the output of a process that others read concurrently.
type helperLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *helperLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns the output so far.
func (l *helperLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs a helper until the test ends. Its log is shown if the test fails.
func start(t *testing.T, ns netns.Namespace, name string, j job) process {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable() // the test binary of this package
	if err != nil {
		t.Fatal(err)
	}
	cmd := ns.Command(context.Background(), program)
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	log := &helperLog{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	p := process{log: log, pid: cmd.Process.Pid, signal: func(s syscall.Signal) {
		if err := cmd.Process.Signal(s); err != nil {
			t.Error(err)
		}
	}, kill: func() {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Kill() // as the kernel does when memory is short: the helper cannot clean up
		_ = cmd.Wait()
	}, wait: func() {
		ended = true
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of %s, its end:\n%s", name, lastLines(log.String()))
		}
	})
	return p
}

// lastLines returns the end of a helper's log, or with -v all of it: CI shows little output of a failed test.
func lastLines(log string) string {
	const most, longest = 30, 400
	if testing.Verbose() {
		return log
	}
	lines := strings.Split(log, "\n")
	lines = lines[max(0, len(lines)-most):]
	for i, line := range lines {
		lines[i] = line[:min(longest, len(line))]
	}
	return strings.Join(lines, "\n")
}
