package liveness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

const (
	patience = 2 * time.Minute
	stuck    = time.Minute
)

// TestThousandConnections opens a thousand connections to probes and metrics that send nothing, or half a request, or
// read no response: the kubelet's probes still work, and few of the connections stay open.
func TestThousandConnections(t *testing.T) {
	t.Parallel()
	const crowd = 1000
	for what, says := range map[string]string{
		"silent": "", "half a request": "GET /livez HTTP/1.1\r\nHost: x\r\n", "reads nothing": strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 20),
		"idle after an answer": "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(what, func(t *testing.T) {
			h := New(stuck)
			h.Set(nil)
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
			require.NoError(t, err)
			ended := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { ended <- h.serveAt(ctx, listener, prometheus.NewRegistry()) }()
			t.Cleanup(func() {
				cancel()
				assert.NoError(t, <-ended)
			})
			const attempts = 3 // a busy machine may be as slow in one of them
			for attempt := 1; ; attempt++ {
				err := probeBeside(t, listener.Addr().String(), crowd, says)
				if err == nil {
					break
				}
				if attempt == attempts {
					t.Fatalf("a probe beside %d connections: %v", crowd, err)
				}
			}
		})
	}
}

// TestWaitingIsAlive checks that the kubelet does not restart a helper that waits for its API server, for any time, but
// restarts one whose loop is stuck.
func TestWaitingIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(stuck)
		pass := func(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest's clock
		pass(24 * time.Hour)
		if err := h.live(); err != nil || h.ready() == nil {
			t.Errorf("while it waits: alive %v, ready %v", err, h.ready())
		}
		h.Begin()
		pass(stuck + time.Second)
		if h.live() == nil {
			t.Error("alive without a pass")
		}
	})
}

// probeBeside opens a crowd of connections that each send a text, and returns the error of a probe beside them. It
// waits until all of them have ended.
func probeBeside(t *testing.T, address string, crowd int, text string) error {
	t.Helper()
	var all []net.Conn
	for range crowd {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", address)
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		all = append(all, c)
		_, _ = io.WriteString(c, text) // it may be closed already
	}
	// It takes milliseconds. If connections were not bounded, it would take until the server closes the crowd's, after
	// five seconds.
	client := http.Client{Timeout: 4 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	err := probe(t.Context(), &client, address)
	wait.Until(t, fmt.Sprintf("at most %d of %d connections", connectionsMost, crowd), patience, func() bool {
		return countOpen(all) <= connectionsMost
	})
	// The remaining ones end, too.
	wait.Until(t, "the end of all of them", patience, func() bool { return countOpen(all) == 0 })
	return err
}

func probe(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/livez", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// countOpen counts the connections that the other end has not closed. It reads the received data.
func countOpen(all []net.Conn) int {
	open := 0
	for _, c := range all {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			open++
		}
	}
	return open
}

func TestHealthOfALoopThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(stuck)
		if h.ready() == nil {
			t.Error("ready before the first pass")
		}
		time.Sleep(2 * stuck) //nolint:forbidigo // synctest's clock
		if err := h.live(); err != nil {
			t.Errorf("not alive while it waits for the API server: %v", err)
		}
		h.Set(nil)
		time.Sleep(stuck) //nolint:forbidigo // as above
		assert.NoError(t, h.live())
		time.Sleep(time.Second) //nolint:forbidigo // as above
		if h.live() == nil {
			t.Errorf("alive %s after the last pass", stuck+time.Second)
		}
	})
}
