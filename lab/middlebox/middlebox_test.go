package middlebox

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/netns"
	"liqonet.io/liqonet/lab/require"
)

// here is the namespace of the test. Middleboxes bind to addresses of its loopback device.
func here(t *testing.T) *netns.Namespace {
	t.Helper()
	ns, err := netns.Current()
	require.NoError(t, err)
	t.Cleanup(func() { ns.Close() })
	return ns
}

// free returns an address at which nothing listens.
func free(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", "127.8.7.7:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// echo accepts connections, and returns what it receives.
func echo(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", "127.8.7.7:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// dial opens a connection that gives up in the end.
func dial(t *testing.T, to netip.AddrPort) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp4", to.String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return c
}

// say sends a text, and expects it back.
func say(t *testing.T, c net.Conn, r io.Reader, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != text {
		t.Fatalf("%q, %v, want %q", got, err, text)
	}
}

func TestBalancer(t *testing.T) {
	at := free(t)
	b, err := StartBalancer(here(t), at, echo(t))
	require.NoError(t, err)
	defer b.Close()
	c := dial(t, at)
	say(t, c, c, "hello")
	if b.Opened() != 1 || b.Bytes() < 10 {
		t.Errorf("%d connections, %d bytes", b.Opened(), b.Bytes())
	}
	b.Cut()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection survives Cut")
	}
	other := dial(t, at)
	say(t, other, other, "hello")
	require.NoError(t, b.Close())
	if _, err := other.Read(make([]byte, 1)); err == nil {
		t.Error("a connection survives Close")
	}
}

func TestProxy(t *testing.T) {
	at, to := free(t), echo(t)
	p, err := StartProxy(here(t), at, "user", "secret")
	require.NoError(t, err)
	defer p.Close()
	ask := func(header string) (net.Conn, *bufio.Reader, int) {
		c := dial(t, at)
		_, err := io.WriteString(c, "CONNECT "+to.String()+" HTTP/1.1\r\nHost: "+to.String()+"\r\n"+header+"\r\n")
		require.NoError(t, err)
		r := bufio.NewReader(c)
		answer, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return c, r, answer.StatusCode
	}
	for header, want := range map[string]int{
		"": http.StatusProxyAuthRequired, "Proxy-Authorization: Basic dXNlcjp3cm9uZw==\r\n": http.StatusProxyAuthRequired,
		"Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n": http.StatusOK,
	} {
		c, r, code := ask(header)
		if code != want {
			t.Errorf("%q: %d, want %d", header, code, want)
		}
		if code == http.StatusOK {
			say(t, c, r, "hello")
		}
	}
	if p.Refused() != 2 || p.Opened() != 1 || p.Bytes() < 10 {
		t.Errorf("%d refused, %d opened, %d bytes", p.Refused(), p.Opened(), p.Bytes())
	}
}

// TestIngress upgrades a connection, and sends frames of either kind.
func TestIngress(t *testing.T) {
	server, err := net.Listen("tcp4", "127.8.7.7:0")
	require.NoError(t, err)
	defer server.Close()
	const frames = "\x82\x05hello\x82\x7e\x00\x80"
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go answer(c, frames+strings.Repeat("x", 128))
		}
	}()
	var mu sync.Mutex
	var seen []string
	route := func(_ context.Context, host, path string) (netip.AddrPort, error) {
		if host != "gateway.example" || path != "/one" {
			return netip.AddrPort{}, errors.New("no rule")
		}
		return server.Addr().(*net.TCPAddr).AddrPort(), nil
	}
	at := free(t)
	i, err := StartIngress(here(t), at, route, func(m Message) {
		mu.Lock()
		defer mu.Unlock()
		if m.Err != nil {
			t.Error(m.Err)
		}
		seen = append(seen, string(m.Payload))
	})
	require.NoError(t, err)
	defer i.Close()
	for header, want := range map[string]int{
		"GET /one HTTP/1.1\r\nHost: gateway.example\r\n":                                              http.StatusNotFound,
		"GET /two HTTP/1.1\r\nHost: gateway.example\r\n":                                              http.StatusNotFound,
		"GET /one HTTP/1.1\r\nHost: gateway.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n": http.StatusSwitchingProtocols,
	} {
		c := tls.Client(dial(t, at), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		_, err := io.WriteString(c, header+"\r\n")
		require.NoError(t, err)
		r := bufio.NewReader(c)
		answer, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		if answer.StatusCode != want {
			t.Errorf("%q: %d, want %d", header, answer.StatusCode, want)
		}
		if answer.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		if _, err := io.CopyN(io.Discard, r, int64(len(frames)+128)); err != nil {
			t.Error(err)
		}
		say(t, c, r, "\x82\x83\x01\x02\x03\x04\x60\x60\x60") // "abc" with a mask
	}
	mu.Lock()
	defer mu.Unlock()
	if want := "hello," + strings.Repeat("x", 128) + ",abc"; !strings.HasPrefix(strings.Join(seen, ","), want) {
		t.Errorf("messages %q, want %q", seen, want)
	}
	if i.Opened() != 2 || i.Bytes() == 0 {
		t.Errorf("%d connections, %d bytes", i.Opened(), i.Bytes())
	}
}

// answer upgrades a connection that asks for it, sends what is begun, and returns what it receives.
func answer(c net.Conn, begun string) {
	defer c.Close()
	r := bufio.NewReader(c)
	request, err := http.ReadRequest(r)
	if err != nil || request.Host != "gateway.example" || request.Header.Get("Upgrade") == "" {
		_, _ = io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n\x82\x03abc")
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"+begun)
	_, _ = io.Copy(c, r)
}
