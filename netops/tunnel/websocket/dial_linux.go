//go:build linux

package websocket

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6455
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	dialWithin  = 5 * time.Second // until a connection carries datagrams
	mostAnswers = 16 << 10        // bytes of an answer; who ends TLS, or a proxy, may send more
	acceptGUID  = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
)

// errNotFound is the answer to a request without a valid proof, and that of anything else at that address.
var errNotFound = errors.New("the server does not know this tunnel, or its clock differs by more than 30 seconds")

// open opens a connection to one address. Its proof has the time of the server, which differs from this clock by ahead;
// seen is the server's time in its answer, zero if it had none.
func (c *Client) open(ctx context.Context, address *url.URL, ahead time.Duration) (_ *conn, buffered []byte, seen time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	raw, err := c.connect(ctx, address.Host)
	if err != nil {
		return nil, nil, seen, err
	}
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now().Add(-time.Second)) })()
	j := &joined{Conn: raw}
	secure := tls.Client(j, clientTLS(c.Seed, address.Hostname(), c.Ingress))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, nil, seen, fmt.Errorf("TLS: %w", err)
	}
	r := bufio.NewReaderSize(io.LimitReader(secure, mostAnswers), mostAnswers)
	if seen, err = upgrade(secure, r, address, newProof(c.Key, c.ID, time.Now().Add(ahead))); err != nil {
		_ = raw.Close()
		return nil, nil, seen, err
	}
	buffered, _ = r.Peek(r.Buffered())
	return newConn(secure, j, true), buffered, seen, nil
}

// connect opens a TCP connection, by a proxy if there is one.
func (c *Client) connect(ctx context.Context, target string) (net.Conn, error) {
	dialer := net.Dialer{Control: forTunnels, KeepAlive: -1}
	proxy, err := c.proxyFor(target)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return dialer.DialContext(ctx, "tcp4", target)
	}
	raw, err := dialer.DialContext(ctx, "tcp4", hostPort(proxy))
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now().Add(-time.Second)) })()
	if proxy.Scheme == "https" {
		raw = tls.Client(raw, &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12})
	}
	if err := c.ask(raw, proxy.User, target); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("proxy %s: %w", proxy.Host, err)
	}
	return raw, nil
}

// proxyFor returns the proxy for a connection to a server; nil: none. Errors have nothing of the environment, which may
// have a password.
func (c *Client) proxyFor(target string) (*url.URL, error) {
	if c.Proxy != nil {
		return c.Proxy, nil
	}
	config, to := httpproxy.FromEnvironment(), &url.URL{Scheme: "https", Host: target}
	proxy, _ := config.ProxyFunc()(to) // nil also if it cannot be parsed, as with a % in a password
	if config.HTTPSProxy != "" {
		config.HTTPSProxy = "any.example:80"
	}
	switch wanted, err := config.ProxyFunc()(to); {
	case err != nil || wanted == nil:
		return nil, err
	// With # or / in a password, the host is another one.
	case proxy == nil, proxy.Scheme != "http" && proxy.Scheme != "https", strings.Trim(proxy.Path, "/")+proxy.RawQuery+proxy.Fragment != "":
		return nil, errors.New("variable HTTPS_PROXY of the gateway's pod: want http:// or https://, and a host; special characters of a password as %XX")
	}
	return proxy, nil
}

// ask asks a proxy for a connection (RFC 9110, section 9.3.6).
func (c *Client) ask(proxy net.Conn, info *url.Userinfo, target string) error {
	request := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n"
	user := info.Username()
	password, _ := info.Password()
	if c.Credentials != nil {
		var err error
		if user, password, err = c.Credentials(); err != nil {
			return err
		}
	}
	if user != "" {
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + "\r\n"
	}
	if _, err := proxy.Write([]byte(request + "\r\n")); err != nil {
		return err
	}
	// Byte by byte: what follows the header belongs to TLS.
	answer, err := http.ReadResponse(bufio.NewReaderSize(io.LimitReader(oneByte{proxy}, mostAnswers), 16), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return errors.New("it asks for a user name and a password, or refuses these")
	}
	return fmt.Errorf("it refuses connections to %s: %s", target, answer.Status)
}

// oneByte reads one byte at a time.
type oneByte struct{ net.Conn }

func (o oneByte) Read(b []byte) (int, error) { return o.Conn.Read(b[:min(1, len(b))]) }

// hostPort returns the address of a URL, with the port of its scheme if it has none.
func hostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// upgrade asks for a WebSocket, and returns the server's time.
func upgrade(c net.Conn, r *bufio.Reader, address *url.URL, proof string) (at time.Time, err error) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	key := base64.StdEncoding.EncodeToString(random[:])
	host := strings.TrimSuffix(address.Host, ":443")
	request := "GET " + address.EscapedPath() + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + "\r\nAuthorization: " + proof + "\r\n\r\n"
	if _, err := c.Write([]byte(request)); err != nil {
		return at, err
	}
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return at, err
	}
	_ = answer.Body.Close() // it reads nothing of a WebSocket
	at, _ = http.ParseTime(answer.Header.Get("Date"))
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return at, errNotFound
	case answer.StatusCode != http.StatusSwitchingProtocols:
		return at, fmt.Errorf("no WebSocket at this address: %s", answer.Status)
	case answer.Header.Get("Sec-WebSocket-Accept") != accepting(key):
		return at, errors.New("the answer is to another request")
	}
	return at, nil
}

// accepting returns the answer to a key (RFC 6455, section 4.2.2).
func accepting(key string) string {
	sum := sha1.Sum([]byte(key + acceptGUID)) //nolint:gosec // RFC 6455
	return base64.StdEncoding.EncodeToString(sum[:])
}
