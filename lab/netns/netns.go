// Package netns makes network namespaces that have no name: they live as long as this process, or a process
// inside them, does. Nothing has to be removed when the lab is killed.
package netns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace held open by this process.
type Namespace struct {
	file *os.File
}

// New makes an empty namespace.
func New() (*Namespace, error) {
	var made *Namespace
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make network namespace: %w", err)
		}
		var err error
		made, err = Current()
		return err
	})
	return made, err
}

// Current opens the calling thread's namespace.
func Current() (*Namespace, error) { return Open("/proc/thread-self/ns/net") }

// Open opens the namespace at a path, such as Path of another process.
func Open(path string) (*Namespace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	return &Namespace{file: f}, nil
}

// FD is the open file descriptor of the namespace.
func (n *Namespace) FD() int { return int(n.file.Fd()) }

// Path is where other processes find the namespace while this one lives.
func (n *Namespace) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.FD()) }

// Close lets the namespace go. It ends when no process is inside.
func (n *Namespace) Close() error { return n.file.Close() }

// Enter moves the calling thread, which must be locked, into the namespace for good.
func (n *Namespace) Enter() error {
	if err := unix.Setns(n.FD(), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	return nil
}

// Do runs f inside the namespace: sockets that f opens and files below /proc/sys/net that it writes are the
// namespace's. f must not start goroutines that rely on it.
func (n *Namespace) Do(f func() error) error {
	return onThread(func() error {
		if err := n.Enter(); err != nil {
			return err
		}
		return f()
	})
}

// Dial opens a TCP connection from inside the namespace.
func (n *Namespace) Dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	var conn net.Conn
	err := n.Do(func() error {
		var d net.Dialer
		var err error
		// With an address, not a name, the socket is made by this very thread.
		conn, err = d.DialContext(ctx, "tcp", address.String())
		return err
	})
	return conn, err
}

// onThread runs f on a thread of its own that f may move to another namespace. A thread that cannot be
// brought back is ended.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := Current()
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		defer home.Close()
		done <- f()
		if home.Enter() == nil {
			runtime.UnlockOSThread()
		}
	}()
	return <-done
}
