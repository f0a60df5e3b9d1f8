package kube_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// frames encodes WebSocket messages as a server sends them, each with its channel.
func frames(all ...string) (b []byte) {
	for _, text := range all {
		switch n := len(text); {
		case n < 126:
			b = append(b, 0x82, byte(n))
		case n < 1<<16:
			b = binary.BigEndian.AppendUint16(append(b, 0x82, 126), uint16(n))
		default:
			b = binary.BigEndian.AppendUint64(append(b, 0x82, 127), uint64(n))
		}
		b = append(b, text...)
	}
	return b
}

// execServer upgrades every request, sends the frames, and sends what it receives to a channel.
func execServer(t *testing.T, answer []byte) (c *kube.Cluster, received chan string) {
	t.Helper()
	received = make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || !strings.HasSuffix(r.URL.Path, "/namespaces/liqonet/pods/p/exec") || r.URL.Query()["command"][1] != "b" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no exec","reason":"Forbidden","code":403}`)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = conn.Write(answer)
		text := make([]byte, 11)
		_, _ = io.ReadFull(buffered, text)
		received <- string(text)
	}))
	t.Cleanup(server.Close)
	c, err := kube.Open(&rest.Config{Host: server.URL}, kube.Options{Context: "a"})
	require.NoError(t, err)
	return c, received
}

func TestExec(t *testing.T) {
	long := strings.Repeat("x", 70000)
	for name, test := range map[string]struct {
		answer []byte
		out    string
		err    string
	}{
		"success":             {frames("\x01", "\x02", "\x01ready\n", "\x01"+long, "\x01"+long[:200], "\x03"+`{"status":"Success"}`), "ready\n" + long + long[:200], ""},
		"failure":             {frames("\x01some", "\x02no such thing", "\x03"+`{"status":"Failure","message":"exit 1"}`), "some", "exit 1 no such thing"},
		"much standard error": {frames("\x02"+long, "\x02"+long, "\x03"+`{"status":"Failure","message":"exit 1"}`), "", "exit 1 xxx"},
		"closed":              {append(frames("\x01some"), 0x88, 0), "some", ""},
		"cut":                 {frames("\x01some")[:4], "", "unexpected EOF"},
		"endless":             {[]byte{0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0}, "", "frame of"},
		"garbage":             {frames("\x03{"), "", "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			c, received := execServer(t, test.answer)
			s, err := c.Exec(t.Context(), "p", "a", "b")
			require.NoError(t, err)
			_, err = io.WriteString(s, "stop")
			require.NoError(t, err)
			if got := <-received; got != "\x82\x85\x00\x00\x00\x00\x00stop" {
				t.Errorf("the command reads %q", got)
			}
			var out bytes.Buffer
			_, err = io.Copy(&out, s)
			if out.String() != test.out || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%d bytes, error %v, want %d, %q", out.Len(), err, len(test.out), test.err)
			}
			if err != nil && len(err.Error()) > 10_000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			assert.NoError(t, s.Close())
		})
	}
	c, _ := execServer(t, nil)
	if _, err := c.Exec(t.Context(), "other", "a", "b"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "no exec") {
		t.Errorf("without the right: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := c.Exec(ctx, "p", "a", "b")
	require.NoError(t, err)
	cancel()
	if _, err := io.ReadAll(s); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("after the end of the context: %v", err)
	}
}
