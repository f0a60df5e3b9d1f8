// Package netns gives tests and measurements network namespaces that have no name: the kernel removes one when the
// last process or open file in it is gone, however this process ends. It needs root.
package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"

	vishnetns "github.com/vishvananda/netns"
)

// Handle is a network namespace that this process holds open. The zero value is not open.
type Handle struct {
	handle vishnetns.NsHandle
}

// Open makes a namespace whose only link is the loopback device, which is down.
func Open() (Handle, error) {
	var ns Handle
	err := onThread(func() (err error) {
		ns.handle, err = vishnetns.New()
		return err
	})
	if err != nil {
		return Handle{}, fmt.Errorf("make a network namespace: %w (it needs root)", err)
	}
	return ns, nil
}

// Close closes the namespace; the kernel removes it with its last process.
func (ns Handle) Close() error {
	if err := ns.handle.Close(); err != nil {
		return fmt.Errorf("close a network namespace: %w", err)
	}
	return nil
}

// FD is the namespace's file descriptor.
func (ns Handle) FD() int { return int(ns.handle) }

// Path is the file by which other processes enter the namespace.
func (ns Handle) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.FD()) }

// Command returns a command that will run in the namespace until the context ends.
func (ns Handle) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + ns.Path(), name}, args...)...)
}

// Run executes a command in the namespace with some input, and returns what it prints. An error contains that, too.
func (ns Handle) Run(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := ns.Command(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// Do calls a function on a thread that is in the namespace, and so are the sockets that it opens.
func (ns Handle) Do(f func() error) error {
	return onThread(func() error {
		if err := vishnetns.Set(ns.handle); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// Dial opens a connection from the namespace.
func (ns Handle) Dial(ctx context.Context, network string, to netip.AddrPort) (conn net.Conn, err error) {
	err = ns.Do(func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, to.String())
		return err
	})
	return conn, err
}

// Listen opens a TCP listener in the namespace. Port 0 is any.
func (ns Handle) Listen(ctx context.Context, address string) (listener net.Listener, err error) {
	err = ns.Do(func() (err error) {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp4", address)
		return err
	})
	return listener, err
}

// ListenPacket opens a socket for packets in the namespace.
func (ns Handle) ListenPacket(ctx context.Context, network, address string) (conn net.PacketConn, err error) {
	err = ns.Do(func() (err error) {
		conn, err = (&net.ListenConfig{}).ListenPacket(ctx, network, address)
		return err
	})
	return conn, err
}

// Answer answers datagrams until the socket is closed.
func Answer(conn *net.UDPConn, answer func(datagram []byte, from netip.AddrPort) []byte) {
	for buf := make([]byte, 1<<16); ; {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil { // otherwise an ICMP error for an earlier answer
			_, _ = conn.WriteToUDPAddrPort(answer(buf[:n], from), from)
		}
	}
}

// Echo returns a datagram to its sender.
func Echo(datagram []byte, _ netip.AddrPort) []byte { return datagram }

// onThread calls a function on a thread of its own, which ends with it: it may leave the network namespace.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked
		done <- f()
	}()
	return <-done
}
