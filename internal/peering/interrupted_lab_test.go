//go:build lab

package peering

import (
	"fmt"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

// interrupted is the exit code of a program that exits because of SIGINT.
const interrupted = 130

// TestLabInterrupted interrupts connect, which rolls back. A second signal ends the rollback immediately; the remaining
// objects can be removed.
func TestLabInterrupted(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	whole := newPair(t, clusters, "whole-again")
	writes := whole.writesOf(t, whole.connectArgs()...)
	whole.remove(t)
	for n := 1; n < writes; n++ {
		t.Run(fmt.Sprintf("once at %02d", n), func(t *testing.T) {
			t.Parallel()
			a := newPair(t, clusters, fmt.Sprintf("once-%02d", n))
			r, s, code := a.disturbed(t, map[int]os.Signal{n: syscall.SIGINT}, a.connectArgs()...)
			switch {
			case s.completed(code, n):
				a.remove(t)
			case code != interrupted:
				t.Fatalf("exit code %d\n%s", code, &r.stderr)
			default:
				a.nothingLeft(t)
			}
		})
	}
	for n := 1; n < writes; n += 2 {
		t.Run(fmt.Sprintf("twice at %02d", n), func(t *testing.T) {
			t.Parallel()
			a := newPair(t, clusters, fmt.Sprintf("twice-%02d", n))
			second := writes - 5 + n // during the rollback
			signals := map[int]os.Signal{writes - 5: syscall.SIGINT, second: syscall.SIGINT}
			if r, s, code := a.disturbed(t, signals, a.connectArgs()...); code != interrupted && !s.completed(code, writes-5) {
				t.Fatalf("exit code %d\n%s", code, &r.stderr)
			}
			a.remove(t)
		})
	}
}

// TestLabKeep: a failed run with --no-rollback does not roll back.
func TestLabKeep(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	a := newPair(t, clusters, "kept")
	r, _, code := a.disturbed(t, map[int]os.Signal{20: syscall.SIGINT}, append(a.connectArgs(), "--no-rollback")...)
	if code != interrupted {
		t.Fatalf("exit code %d\n%s", code, &r.stderr)
	}
	for _, s := range clusters {
		if len(s.Left(t, a.namespace)) == 0 {
			t.Errorf("cluster %s has nothing of it", s.Name)
		}
	}
	a.remove(t)
}

// TestLabLostAndBack makes an API server unavailable during a connect, for longer than its time limit: the changes
// there are rolled back all the same.
func TestLabLostAndBack(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	a := newPair(t, clusters, "lost")
	const absence = 8 * time.Second
	var begin time.Time
	var seen *signalling
	lost := func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if seen.total() < 12 {
				server.ServeHTTP(w, r)
				return
			}
			seen.mu.Lock()
			if begin.IsZero() {
				begin = time.Now()
			}
			away := time.Since(begin) < absence
			seen.mu.Unlock()
			if away {
				panic(http.ErrAbortHandler)
			}
			server.ServeHTTP(w, r)
		})
	}
	seen = &signalling{}
	program := newLiqoctl(t, map[string]string{
		"a": interpose(t, clusters[0].Config, hideInstallations(a.namespace, seen.fault)),
		"b": interpose(t, clusters[1].Config, hideInstallations(a.namespace, func(server http.Handler) http.Handler { return lost(seen.fault(server)) })),
	})
	r := program.start(t, append(a.connectArgs(), "--timeout", "5s")...)
	if code := r.wait(t); code != 1 || len(linesOf(r.stderr.String(), "error: ")) != 1 || len(linesOf(r.stderr.String(), "hint: ")) != 1 {
		t.Errorf("exit code %d\n%s", code, &r.stderr)
	}
	a.nothingLeft(t)
}
