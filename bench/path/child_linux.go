package path

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/bench/apiserver"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/netops/tunnel"
)

// ChildArgument is the only argument of a program that is to be one of the processes of a path: it calls RunChild.
const ChildArgument = "child"

// job is the first input of a child. The field that is set selects its role.
type job struct {
	Upstream *tunnelJob
	Own      *tunnelJob
	Helper   *helperJob
}

// helperJob describes a helper: a node's, or, with a peering, a gateway's.
type helperJob struct {
	Socket  string // of its API server
	Node    string
	Peering string
	Gateway int    // its number less one
	Keys    string // folder
}

// RunChild runs a child until its input ends: it ends with the parent, however that ends. A tunnel reports that it is
// open.
func RunChild(ctx context.Context, in io.Reader, out, log io.Writer) error {
	var j job
	lines := json.NewDecoder(in)
	if err := lines.Decode(&j); err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	opened := func() error { _, err := fmt.Fprintln(out, "open"); return err }
	logger := slog.New(slog.NewTextHandler(log, nil))
	switch {
	case j.Upstream != nil:
		return j.Upstream.runUpstream(ctx, opened)
	case j.Own != nil:
		return j.Own.runOwn(ctx, opened, logger)
	case j.Helper != nil:
		return j.Helper.run(ctx, logger)
	}
	return errors.New("read job: nothing to do")
}

// runUpstream is what the program of wireguard-go does.
func (t tunnelJob) runUpstream(ctx context.Context, opened func() error) error {
	link, err := tun.CreateTUN(t.Link, t.MTU)
	if err != nil {
		return fmt.Errorf("create TUN %s: %w", t.Link, err)
	}
	d := device.NewDevice(link, conn.NewDefaultBind(), device.NewLogger(device.LogLevelError, ""))
	defer d.Close()
	if err := errors.Join(d.IpcSet(t.uapi()), d.Up(), opened()); err != nil {
		return fmt.Errorf("open WireGuard device %s: %w", t.Link, err)
	}
	select {
	case <-ctx.Done():
	case <-d.Wait():
	}
	return nil
}

// runOwn is what a gateway's helper does for its tunnel.
func (t tunnelJob) runOwn(ctx context.Context, opened func() error, log *slog.Logger) error {
	d, err := tunnel.Open(t.config(), log, func() {})
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := opened(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// run is a helper: the code of the product, with another client.
func (h helperJob) run(ctx context.Context, log *slog.Logger) error {
	client, err := kubernetes.NewForConfig(apiserver.ClientConfig(h.Socket))
	if err != nil {
		return err
	}
	env := helper.Env{Client: client, Namespace: records.DefaultNamespace, HealthAddress: "127.0.0.1:6093", Log: log}
	if h.Peering == "" {
		return helper.Node{Env: env, Name: h.Node}.Run(ctx)
	}
	return helper.Gateway{
		Env: env, ID: records.GatewayID{Peering: h.Peering, Number: h.Gateway + 1}, Pod: podOf(h.Gateway), PodIP: gatewayAt(h.Gateway), Node: h.Node, Keys: h.Keys,
	}.Run(ctx)
}

// start runs a child in a namespace until the bed ends. Its errors are part of the bed's.
func (b *Bed) start(ns netns.Handle, j job) (out io.Reader, log *childLog, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd, log := ns.Command(b.ctx, self, ChildArgument), &childLog{}
	cmd.Stderr = log
	cmd.Env = append(os.Environ(), "GOMEMLIMIT="+strconv.Itoa(memoryOfGo))
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, err
	}
	cmd.Cancel = in.Close
	cmd.WaitDelay = childPatience
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	b.started = append(b.started, cmd.Process.Pid)
	b.onClose(func() error {
		_ = in.Close()
		if err := cmd.Wait(); err != nil && b.ctx.Err() == nil {
			return fmt.Errorf("process in a namespace: %w\n%s", err, log)
		}
		return nil
	})
	return out, log, json.NewEncoder(in).Encode(j)
}

// childLog is what a child has logged so far.
type childLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *childLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *childLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// count is how often a text was logged.
func (l *childLog) count(text string) int { return strings.Count(l.String(), text) }

// startTunnel runs a child that is a tunnel, and waits until it is open.
func (b *Bed) startTunnel(ns netns.Handle, j job) error {
	out, _, err := b.start(ns, j)
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(out, make([]byte, len("open\n"))); err != nil {
		return fmt.Errorf("tunnel's process: %w", err) // Close returns the cause
	}
	return nil
}

const childPatience = 5 * time.Second

// MemoryLimit is that of the containers of helpers, bytes; Go has the same share of it as there.
const (
	MemoryLimit = 256 << 20
	memoryOfGo  = MemoryLimit * 85 / 100
)
