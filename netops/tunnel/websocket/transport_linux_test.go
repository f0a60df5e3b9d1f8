package websocket

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// end plays WireGuard at one end.
type end struct {
	out  chan []byte
	done chan struct{}
	once sync.Once

	mu  sync.Mutex
	got [][]byte
}

var endOfServer = netip.MustParseAddrPort("127.0.0.1:1234")

func newEnd() *end { return &end{out: make(chan []byte, 10_000), done: make(chan struct{})} }

func (e *end) read(b []byte) (n, size int, err error) {
	select {
	case one := <-e.out:
		n = copy(b, one)
		return n, n, nil
	case <-e.done:
		return 0, 0, net.ErrClosed
	}
}

func (e *end) write(b []byte, size int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(b) > 0 {
		one := b[:min(size, len(b))]
		e.got, b = append(e.got, bytes.Clone(one)), b[len(one):]
	}
	return nil
}

func (e *end) local() netip.AddrPort { return endOfServer }

func (e *end) Close() error {
	e.once.Do(func() { close(e.done) })
	return nil
}

func (e *end) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.got)
}

var quiet = slog.New(slog.DiscardHandler)

// testServer serves tunnel testID, and returns WireGuard's end of it.
func testServer(t *testing.T, plain bool) (*Server, *end) {
	t.Helper()
	e := newEnd()
	return testServerTo(t, plain, func(uint16) (datagrams, error) { return e, nil }), e
}

// testServerTo serves tunnel testID, with a socket to WireGuard for each connection.
func testServerTo(t *testing.T, plain bool, socket func(uint16) (datagrams, error)) *Server {
	t.Helper()
	s, err := Listen(ServerConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Seed: Key{7}, Plain: plain}, quiet)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	s.proofs.begin = time.Now().Add(-time.Minute)
	s.socket = socket
	require.NoError(t, s.Serve(map[TunnelID]ServerTunnel{testID: {testKey, listenPort}}))
	return s
}

// at returns the addresses of a client.
func at(u *url.URL) func() []*url.URL { return func() []*url.URL { return []*url.URL{u} } }

func (s *Server) url() *url.URL {
	return &url.URL{Scheme: "wss", Host: s.listener.Addr().String(), Path: "/a/b"}
}

// testClient opens a client, and returns WireGuard's end of it.
func testClient(t *testing.T, c ClientConfig) (*Client, *end) {
	t.Helper()
	e := newEnd()
	c.ID, c.Key = testID, testKey
	client := dial(c, e, quiet, func() {})
	t.Cleanup(func() { _ = client.Close() })
	return client, e
}

func (c *Client) isConnected() bool {
	since, _ := c.Connected()
	return !since.IsZero()
}

// exchange sends datagrams of many sizes both ways, and checks that all arrive, in order.
func exchange(t *testing.T, a, b *end) {
	t.Helper()
	for _, way := range [][2]*end{{a, b}, {b, a}} {
		before := way[1].count()
		var want [][]byte
		for i := range 300 {
			one := bytes.Repeat([]byte{byte(i)}, 1+i%7*200)
			want = append(want, one)
			way[0].out <- one
		}
		wait.Until(t, "all datagrams", 5*time.Second, func() bool { return way[1].count() == before+len(want) })
		for i, one := range want {
			if !bytes.Equal(way[1].got[before+i], one) {
				t.Fatalf("datagram %d has %d bytes, want %d", i, len(way[1].got[before+i]), len(one))
			}
		}
	}
}

// TestTransport: datagrams cross both ways, directly, behind something that ends TLS, and by a proxy with a password.
func TestTransport(t *testing.T) {
	t.Run("direct", func(t *testing.T) {
		s, far := testServer(t, false)
		client, near := testClient(t, ClientConfig{Addresses: at(s.url()), Seed: Key{7}})
		wait.Until(t, "a connection", 5*time.Second, client.isConnected)
		exchange(t, near, far)
		got, congestion := s.Remote(testID, endOfServer)
		if other, _ := s.Remote(testID, netip.AddrPort{}); !got.Addr().IsLoopback() || other.IsValid() {
			t.Errorf("remote %v, that of no connection %v", got, other)
		}
		if _, own := client.Remote(); congestion != congestionControl || own != congestionControl {
			t.Errorf("congestion control %q and %q", congestion, own)
		}
		client.Announce(99)
		wait.Until(t, "the session", 5*time.Second, func() bool { return s.Allows(99) })
		if s.Allows(98) || s.Allows(0) {
			t.Error("any session is allowed")
		}
		begin := time.Now()
		s.tunnels[testID].connections[0].current().close(net.ErrClosed)
		wait.Until(t, "the end of the session", time.Second, func() bool { return !s.Allows(99) })
		if took := time.Since(begin); took > time.Second {
			t.Errorf("a connection ends after %s", took)
		}
		require.NoError(t, s.Serve(nil))
		wait.Until(t, "the end", 5*time.Second, func() bool { return !client.isConnected() })
	})
	t.Run("ingress", func(t *testing.T) {
		s, far := testServer(t, true)
		client, near := testClient(t, ClientConfig{Addresses: at(ingress(t, s)), Ingress: true})
		wait.Until(t, "a connection", 5*time.Second, client.isConnected)
		exchange(t, near, far)
	})
	t.Run("proxy", func(t *testing.T) {
		s, far := testServer(t, false)
		client, near := testClient(t, ClientConfig{
			Addresses: at(s.url()), Seed: Key{7}, Proxy: &url.URL{Scheme: "http", Host: proxy(t, "u:p")},
			Credentials: func() (string, string, error) { return "u", "p", nil },
		})
		wait.Until(t, "a connection", 5*time.Second, client.isConnected)
		exchange(t, near, far)
	})
}

// TestProxyOfEnvironment: a client without a proxy uses that of its environment, for servers that NO_PROXY does not
// name.
func TestProxyOfEnvironment(t *testing.T) {
	s, far := testServer(t, false)
	t.Setenv("HTTPS_PROXY", "http://u:p@"+proxy(t, "u:p"))
	t.Setenv("NO_PROXY", "direct.example")
	address := s.url()
	address.Host = net.JoinHostPort(serverBehindProxy, address.Port())
	client, near := testClient(t, ClientConfig{Addresses: at(address), Seed: Key{7}})
	wait.Until(t, "a connection", 5*time.Second, client.isConnected)
	exchange(t, near, far)

	for _, c := range []struct{ own, environment, target, want string }{
		{"", "proxy.example:3128", "server.example:443", "http://proxy.example:3128"},
		{"", "proxy.example:3128", "direct.example:443", ""},
		{"", "", "server.example:443", ""},
		{"http://own.example:80", "proxy.example:3128", "direct.example:443", "http://own.example:80"},
		{"", "socks5://u:secret@proxy.example:1080", "server.example:443", "error"},
		{"", "http://u:secret%zz@proxy.example:3128", "server.example:443", "error"},
		{"", "http://u:secret%zz@proxy.example:3128", "direct.example:443", ""},
		{"", "http://u:12#secret@proxy.example:3128", "server.example:443", "error"},
	} {
		t.Setenv("HTTPS_PROXY", c.environment)
		client := Client{}
		if c.own != "" {
			client.Proxy, _ = url.Parse(c.own)
		}
		got, err := client.proxyFor(c.target)
		if (err != nil) != (c.want == "error") || err == nil && (got == nil) != (c.want == "") || got != nil && got.String() != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v has the password", err)
		}
	}
}

// serverBehindProxy is the name by which proxies of tests know the servers of this machine.
const serverBehindProxy = "server.example"

// TestNoTransport: a client says why it has no connection.
func TestNoTransport(t *testing.T) {
	s, _ := testServer(t, false)
	for name, c := range map[string]struct {
		config ClientConfig
		want   string
	}{
		"another key": {ClientConfig{Addresses: at(s.url()), Seed: Key{8}}, "not that of the peer's gateway"},
		"nobody":      {ClientConfig{Addresses: at(&url.URL{Host: "127.0.0.1:1"})}, "connection refused"},
		"no password": {ClientConfig{Addresses: at(s.url()), Proxy: &url.URL{Scheme: "http", Host: proxy(t, "u:p")}}, "user name and a password"},
	} {
		client, _ := testClient(t, c.config)
		wait.Until(t, name, 5*time.Second, func() bool {
			_, err := client.Connected()
			return err != nil && strings.Contains(err.Error(), c.want)
		})
	}
	other := dial(ClientConfig{ID: testID, Key: Key{9}, Addresses: at(s.url()), Seed: Key{7}}, newEnd(), quiet, func() {})
	defer func() { _ = other.Close() }()
	wait.Until(t, "a wrong proof", 5*time.Second, func() bool {
		_, err := other.Connected()
		return err == errNotFound //nolint:errorlint // it is not wrapped
	})
}

// TestEndlessAnswer: who ends TLS at an ingress, or a proxy, cannot fill a client's memory by an answer without end.
func TestEndlessAnswer(t *testing.T) {
	config, err := serverTLS(Key{1})
	require.NoError(t, err)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	host := listener.Addr().String()
	for name, c := range map[string]struct {
		tls    *tls.Config
		client ClientConfig
	}{
		"ingress": {config, ClientConfig{Addresses: at(&url.URL{Scheme: "wss", Host: host}), Ingress: true}},
		"proxy":   {nil, ClientConfig{Addresses: at(&url.URL{Scheme: "wss", Host: "a:443"}), Proxy: &url.URL{Scheme: "http", Host: host}}},
	} {
		client, _ := testClient(t, c.client)
		answer, err := listener.Accept()
		require.NoError(t, err)
		if c.tls != nil {
			answer = tls.Server(answer, c.tls)
		}
		_, err = io.WriteString(answer, "HTTP/1.1 200 OK\r\nA: ")
		sent := 0
		for begin := time.Now(); err == nil && time.Since(begin) < dialWithin/2; {
			_, err = answer.Write(make([]byte, 16<<10))
			sent += 16 << 10
		}
		if err == nil {
			t.Errorf("%s: the client reads %d MiB", name, sent>>20)
		}
		_ = answer.Close()
		_ = client.Close()
	}
}

// TestClockBehind: a client whose clock is behind that of a server which has just started is not kept waiting.
func TestClockBehind(t *testing.T) {
	s, _ := testServer(t, false)
	next := time.Now().Truncate(time.Second).Add(time.Second)
	if time.Until(next) < time.Second/2 {
		<-time.After(time.Until(next))
		next = next.Add(time.Second)
	}
	s.proofs.begin = next // the second attempt is later than that
	client, _ := testClient(t, ClientConfig{Addresses: at(s.url()), Seed: Key{7}})
	wait.Until(t, "a refused request", time.Second, func() bool {
		_, err := client.Connected()
		return errors.Is(err, errNotFound)
	})
	wait.Until(t, "a connection", refusedWait, client.isConnected)
}

// ingress plays an ingress controller.
func ingress(t *testing.T, s *Server) *url.URL {
	t.Helper()
	to := &url.URL{Scheme: "http", Host: s.listener.Addr().String()}
	config, err := serverTLS(Key{1})
	require.NoError(t, err)
	listener, err := tls.Listen("tcp4", "127.0.0.1:0", config)
	require.NoError(t, err)
	server := &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return &url.URL{Scheme: "wss", Host: listener.Addr().String(), Path: "/liqonet/a/1"}
}

// proxy plays an HTTP proxy that asks for a password.
func proxy(t *testing.T, password string) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(password))
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != want {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		far, err := net.Dial("tcp4", strings.Replace(r.Host, serverBehindProxy, "127.0.0.1", 1))
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		near, buffered, _ := http.NewResponseController(w).Hijack()
		_, _ = io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() { _, _ = io.Copy(far, buffered); _ = far.Close() }()
		_, _ = io.Copy(near, far)
		_ = near.Close()
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// TestStrangers: whoever has no key gets the same bytes for whatever is sent, and cannot keep others out.
func TestStrangers(t *testing.T) {
	s, far := testServer(t, true)
	valid := "Upgrade: websocket\r\nSec-WebSocket-Key: a\r\n"
	replayed := newProof(testKey, testID, time.Now())
	if _, ok := s.proofs.check(replayed, time.Now()); !ok {
		t.Fatal("no valid proof")
	}
	answers := map[string]bool{}
	for name, request := range map[string]string{
		"no proof":    "GET / HTTP/1.1\r\nHost: a\r\n" + valid + "\r\n",
		"no HTTP":     "\x16\x03\x01\x00\x00\r\n\r\n",
		"long header": "GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("a", requestMost) + "\r\n\r\n",
		"replayed":    "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: " + replayed + "\r\n" + valid + "\r\n",
		"another key": "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: " + newProof(Key{2}, testID, time.Now()) + "\r\n" + valid + "\r\n",
		"another way": "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: " + newProof(testKey, testID, time.Now()) + "\r\n" + valid + "\r\n",
		"no upgrade":  "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: " + newProof(testKey, testID, time.Now()) + "\r\n\r\n",
		"other host":  "OPTIONS * HTTP/1.0\r\n\r\n",
	} {
		c, err := net.Dial("tcp4", s.listener.Addr().String())
		require.NoError(t, err)
		_, _ = c.Write([]byte(request))
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = answer.Body.Close()
		answer.Header.Del("Date")
		answers[fmt.Sprint(answer.Status, answer.Header, answer.ContentLength)] = true
		_ = c.Close()
	}
	if len(answers) != 1 {
		t.Errorf("answers differ: %v", answers)
	}
	for range 3 * waitingMost { // they ask for nothing, and keep their connections
		c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp4", s.listener.Addr().String())
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
	}
	client, near := testClient(t, ClientConfig{Addresses: at(ingress(t, s)), Ingress: true})
	wait.Until(t, "a connection", requestWithin, client.isConnected)
	exchange(t, near, far)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > waitingMost {
		t.Errorf("%d connections wait", len(s.waiting))
	}
}

// TestLives: connections that something between ends after the same time are replaced before.
func TestLives(t *testing.T) {
	var l lives
	for _, step := range []struct{ life, want time.Duration }{
		{30 * time.Second, 0}, {30*time.Second + time.Second/10, 30 * time.Second}, {time.Minute, 0}, {time.Second, 0}, {time.Second, 0},
	} {
		if l.add(step.life); l.known != step.want {
			t.Errorf("after %s: %s, want %s", step.life, l.known, step.want)
		}
	}
}
