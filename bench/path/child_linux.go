package path

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops/tunnel/wireguard"
)

// Job is what a process of a path does: one of the tunnels, or a helper's work.
type Job struct {
	clusters.Helper
	Upstream *tunnelJob
	Own      *tunnelJob
}

// Run does a job until the parent ends the process's input. A tunnel prints when it is open.
func Run(ctx context.Context, j Job) error {
	opened := func() error { _, err := fmt.Fprintln(os.Stdout, "open"); return err }
	switch {
	case j.Upstream != nil:
		return j.Upstream.runUpstream(process.WithParent(ctx), opened)
	case j.Own != nil:
		return j.Own.runOwn(process.WithParent(ctx), opened, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	}
	return j.Run(ctx, func(c kubernetes.Interface) kubernetes.Interface { return c })
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
	d, err := wireguard.Open(t.config(), log, func() {})
	if err != nil {
		return err
	}
	defer func() { _ = d.Close(false) }()
	if err := opened(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// startTunnel runs a child that is a tunnel, and waits until it is open.
func (b *Bed) startTunnel(ns netns.Namespace, j Job) {
	p := process.Start(b.t, ns, "tunnel", j)
	b.keep(p)
	_, err := io.ReadFull(p.Out, make([]byte, len("open\n")))
	require.NoError(b.t, err) // Close returns the cause
}
