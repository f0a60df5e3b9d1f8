//go:build linux

package helper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
	"liqonet.io/liqonet/netops/nft"
)

// process is a helper that runs in a namespace, with a cluster in its memory.
type process struct {
	t       *testing.T
	netns   netns.Namespace
	command *exec.Cmd
	kernel  *kernel.Kernel
	orders  io.WriteCloser
	out     io.Reader
	ended   chan struct{} // out is
	cpu     chan time.Duration
	metrics http.Client

	mu  sync.Mutex // guards log
	log bytes.Buffer
}

// Write keeps the helper's log.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// start begins a helper in a namespace; listen must follow.
func start(t *testing.T, ns netns.Namespace, c childConfig) *process {
	t.Helper()
	p := &process{t: t, netns: ns, ended: make(chan struct{}), cpu: make(chan time.Duration, 1)}
	p.metrics.Transport = &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			err = ns.Do(func() (err error) { c, err = new(net.Dialer).DialContext(ctx, network, address); return err })
			return c, err
		},
	}
	var err error
	if p.kernel, err = kernel.OpenAt(ns.FD()); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := ns.Command(context.WithoutCancel(t.Context()), self) // it ends with its input
	p.command = cmd
	cmd.Env = append(os.Environ(), childVariable+"=yes")
	cmd.Stderr = p
	if p.out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if p.orders, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.orders.Close()
		<-p.ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("helper: %v", err)
		}
		if err := p.kernel.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log of helper %+v, its end:\n%s", c, lastLines(p.log.String()))
		}
	})
	p.send(c)
	return p
}

func (p *process) send(v any) {
	p.t.Helper()
	if err := json.NewEncoder(p.orders).Encode(v); err != nil {
		p.t.Error(err)
	}
}

// listen calls onNews, from one goroutine, with every object that changes in the helper's cluster.
func (p *process) listen(onNews func(news)) {
	lines := json.NewDecoder(p.out)
	go func() {
		defer close(p.ended)
		for {
			var n news
			if lines.Decode(&n) != nil {
				return
			}
			if n.CPU != 0 {
				p.cpu <- n.CPU
				continue
			}
			onNews(n)
		}
	}()
}

// used asks for the processor time that the helper has used since it began.
func (p *process) used() time.Duration {
	p.send(order{Usage: true})
	return <-p.cpu
}

// state is the text of liqonet's objects in the helper's kernel.
func (p *process) state(t *testing.T) string {
	t.Helper()
	have, err := p.kernel.Observe()
	if err != nil {
		t.Fatal(err)
	}
	table := have.Firewall // in the order in which its chains and sets were made, which means nothing
	slices.SortFunc(table.Chains, func(a, b nft.Chain) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(table.Sets, func(a, b nft.Set) int { return strings.Compare(a.Name, b.Name) })
	have.Firewall = nft.Table{}
	return netops.Diff(netops.State{}, have).String() + table.String()
}

// counter is the sum of a metric of the helper.
func (p *process) counter(name string) float64 {
	p.t.Helper()
	answer, err := p.metrics.Get("http://127.0.0.1:6093/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if last := strings.LastIndexByte(line, ' '); last >= 0 && strings.HasPrefix(line, name) {
			v, err := strconv.ParseFloat(line[last+1:], 64)
			if err != nil {
				p.t.Fatal(err)
			}
			sum += v
		}
	}
	return sum
}

// ready is nil where the helper tells the kubelet that it is, else what it says.
func (p *process) ready() error {
	p.t.Helper()
	answer, err := p.metrics.Get("http://127.0.0.1:6093/readyz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// Metrics of helpers.
const (
	driftMetric  = "liqonet_kernel_drift_total"
	passesMetric = "liqonet_kernel_passes_total"
)

// rest waits until the helper makes no passes any more.
func (p *process) rest(t *testing.T) {
	t.Helper()
	const quiet = 4 * passPause
	passes, since := p.counter(passesMetric), time.Now()
	wait.Until(t, "rest", patience, func() bool {
		if n := p.counter(passesMetric); n != passes {
			passes, since = n, time.Now()
		}
		return time.Since(since) >= quiet
	})
}

// signal stops the helper, or lets it go on.
func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// patience is how long a test waits where how long is not the point.
const patience = 2 * time.Minute

// latest keeps records that helpers have written.
type latest struct {
	mu     sync.Mutex
	status records.Status
	state  string // that stands beside it
	node   records.Node
}

func (l *latest) get() (records.Status, records.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status, l.node
}

func (l *latest) stated() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// keep decodes what a helper reports, of which one may be nil.
func (l *latest) keep(t *testing.T, lease *coordinationv1.Lease, status *corev1.ConfigMap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	switch {
	case status != nil:
		l.status, err = recordOf[records.Status](status)
		l.state = status.Data[records.StateKey]
	case lease != nil && lease.Annotations[records.AnnotationNode] != "":
		l.node, err = records.Decode[records.Node](lease.Annotations[records.AnnotationNode])
	}
	if err != nil {
		t.Error(err)
	}
}

// lastLines is the end of a helper's log, or with -v all of it: CI shows little of a test that fails.
func lastLines(log string) string {
	const most = 30
	lines := strings.SplitAfter(log, "\n")
	if testing.Verbose() {
		return log
	}
	return strings.Join(lines[max(0, len(lines)-most):], "")
}
