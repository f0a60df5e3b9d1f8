//go:build linux

package helper

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/liveness"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/sample"
)

// TestBrokenWatch: a helper that gets no notifications of the kernel any more ends with an error, so that the kubelet
// starts another one.
func TestBrokenWatch(t *testing.T) {
	for _, family := range []struct {
		name   string
		number int
	}{{"routes", unix.NETLINK_ROUTE}, {"firewall", unix.NETLINK_NETFILTER}} {
		t.Run(family.name, func(t *testing.T) {
			ns, kernel := sample.OpenKernel(t)
			ctx, cancel := context.WithTimeout(t.Context(), sample.Patience)
			defer cancel()
			turned := make(chan struct{}, 1)
			s := Service{
				Env:    Env{HealthAddress: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)},
				Health: liveness.New(Stuck), Objects: cache.New(nil), Metrics: NewMetrics(), Kernel: kernel,
				Step: func(context.Context) error { wakeup.Notify(turned); return nil },
			}
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			<-turned
			sendError(t, ns, family.number)
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "watch "+family.name) || ctx.Err() != nil {
				t.Errorf("the helper ended with %v (%v), want the error of its watch", err, ctx.Err())
			}
		})
	}
}

// sendError sends an error to each socket in a namespace that receives notifications of a netlink family, as if the
// kernel did.
func sendError(t *testing.T, ns netns.Namespace, family int) {
	t.Helper()
	var message []byte
	message = binary.NativeEndian.AppendUint32(message, unix.NLMSG_HDRLEN+unix.SizeofNlMsgerr)
	message = binary.NativeEndian.AppendUint16(message, unix.NLMSG_ERROR)
	message = append(message, make([]byte, unix.NLMSG_HDRLEN-len(message))...)
	message = binary.NativeEndian.AppendUint32(message, ^uint32(unix.EIO)+1)
	message = append(message, make([]byte, unix.NLMSG_HDRLEN)...)
	sent := 0
	for line := range strings.Lines(ns.Run("cat", "/proc/net/netlink")) {
		var socket string
		var protocol int
		var port, groups uint32
		if _, err := fmt.Sscanf(line, "%s %d %d %x", &socket, &protocol, &port, &groups); err != nil || protocol != family || groups == 0 {
			continue
		}
		ns.For(t).Inside(func() error {
			fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, family)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			return unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: port})
		})
		sent++
	}
	if sent == 0 {
		t.Fatal("no socket gets notifications")
	}
}
