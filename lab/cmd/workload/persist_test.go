package main

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/require"
)

// TestDatagramIsSentAgain has an echo that is deaf to the first datagrams.
func TestDatagramIsSentAgain(t *testing.T) {
	const limit = 10 * retryAfter
	for name, c := range map[string]struct {
		lost   int
		answer bool
		took   time.Duration
	}{
		"none is lost": {0, true, 0},
		"two are lost": {2, true, 2 * retryAfter},
		"all are lost": {100, false, limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				defer server.Close()
				defer client.Close()
				go func() {
					buf := make([]byte, 64)
					for i := 0; ; i++ {
						n, err := server.Read(buf)
						if err != nil {
							return
						}
						if i >= c.lost {
							// The client sees what is missing.
							_, _ = server.Write(append([]byte("x\n"), buf[len("x\n"):n]...))
						}
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				begin := time.Now()
				line, err := exchange(ctx, client, "udp", []byte("abc"))
				if took := time.Since(begin); took != c.took {
					t.Errorf("after %v, want %v", took, c.took)
				}
				if c.answer && (err != nil || string(line) != "x\n") || !c.answer && !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%q, %v", line, err)
				}
			})
		})
	}
}

// TestDialAgain connects to a port that is closed at first.
func TestDialAgain(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	attempts := 0
	dialer := net.Dialer{Control: func(string, string, syscall.RawConn) error {
		if attempts++; attempts != 2 {
			return nil
		}
		l, err := net.Listen("tcp", address)
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		return err
	}}
	ctx, cancel := context.WithTimeout(t.Context(), defaultTimeout)
	defer cancel()
	conn, err := dial(ctx, &dialer, "tcp", address)
	if err != nil {
		t.Fatalf("attempt %d: %v", attempts, err)
	}
	_ = conn.Close()
}

func TestPersistEndsWhereItIsOfNoUse(t *testing.T) {
	for _, want := range []error{nil, errors.New("wrong answer"), &net.OpError{Op: "write", Err: unix.EMSGSIZE}} {
		asked := 0
		if err := persist(t.Context(), func() error { asked++; return want }); !errors.Is(err, want) || asked != 1 {
			t.Errorf("asked %d times: %v, want once: %v", asked, err, want)
		}
	}
}
