package path

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/apiserver"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/netops/tunnel"
)

// Job is what a process of a path does. One of its fields is set.
type Job struct {
	Upstream *tunnelJob
	Own      *tunnelJob
	Helper   *Helper
}

// Helper describes a helper, a node's or a gateway's, and its API server.
type Helper struct {
	Socket  string
	Node    *helper.Node    // without Env
	Gateway *helper.Gateway // as Node
}

// Run does a job until the parent ends the process's input. A tunnel prints when it is open.
func Run(ctx context.Context, j Job) error {
	ctx = process.WithParent(ctx)
	debug.SetMemoryLimit(memoryOfGo)
	opened := func() error { _, err := fmt.Fprintln(os.Stdout, "open"); return err }
	switch {
	case j.Upstream != nil:
		return j.Upstream.runUpstream(ctx, opened)
	case j.Own != nil:
		return j.Own.runOwn(ctx, opened, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	case j.Helper != nil:
		return j.Helper.Run(ctx, func(c kubernetes.Interface) kubernetes.Interface { return c })
	}
	return errors.New("a job without a field")
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

// Run runs a helper: the code of the product, with another client, which a test may wrap.
func (h Helper) Run(ctx context.Context, wrap func(kubernetes.Interface) kubernetes.Interface) error {
	client, err := kubernetes.NewForConfig(apiserver.ClientConfig(h.Socket))
	if err != nil {
		return err
	}
	env := helper.Env{
		Client: wrap(client), Namespace: records.DefaultNamespace, HealthAddress: process.HealthAddress,
		Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)), // as the product's, without its limits
	}
	if h.Node != nil {
		h.Node.Env = env
		return h.Node.Run(ctx)
	}
	h.Gateway.Env = env
	return h.Gateway.Run(ctx)
}

// start runs a process in a namespace until the bed ends. Its errors are part of the bed's.
func (b *Bed) start(ns netns.Handle, j Job) (*process.Handle, error) {
	p, err := process.Open(ns, j)
	if err != nil {
		return nil, err
	}
	b.started = append(b.started, p.PID)
	b.onClose(func() error {
		if err := p.Close(); b.ctx.Err() == nil {
			return err
		}
		return nil
	})
	return p, nil
}

// startTunnel runs a child that is a tunnel, and waits until it is open.
func (b *Bed) startTunnel(ns netns.Handle, j Job) error {
	p, err := b.start(ns, j)
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(p.Out, make([]byte, len("open\n"))); err != nil {
		return fmt.Errorf("tunnel's process: %w", err) // Close returns the cause
	}
	return nil
}

// MemoryLimit is that of the containers of helpers, bytes; Go has the same share of it as there.
const (
	MemoryLimit = 256 << 20
	memoryOfGo  = MemoryLimit * 85 / 100
)
