package middlebox

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"sync"
	"time"

	"liqonet.io/liqonet/lab/netns"
)

// Route returns where an ingress controller sends a request.
type Route func(ctx context.Context, host, path string) (netip.AddrPort, error)

// Ingress plays an ingress controller: it ends TLS, with a certificate of its own, and forwards requests, also upgrades
// to WebSocket, without TLS. It watches no objects.
type Ingress struct {
	connections
	server *http.Server
	route  Route
	seen   func(Message)
}

// StartIngress forwards requests to where route sends them. seen gets the messages of all WebSockets, of several
// connections at a time.
func StartIngress(ns *netns.Namespace, at netip.AddrPort, route Route, seen func(Message)) (*Ingress, error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, err
	}
	l, err := listen(ns, at)
	if err != nil {
		return nil, err
	}
	i := &Ingress{connections: connections{ns: ns}, route: route, seen: seen}
	i.server = &http.Server{
		Handler: i, ReadHeaderTimeout: headerWithin, ErrorLog: log.New(io.Discard, "", 0), // of handshakes that fail
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	go func() { _ = i.server.ServeTLS(l, "", "") }() // until Close
	return i, nil
}

// Close ends the ingress controller and its connections.
func (i *Ingress) Close() error {
	err := i.server.Close()
	i.close()
	return err
}

func (i *Ingress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, err := i.route(r.Context(), r.Host, r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	// A transport for each request: a connection has one WebSocket.
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := i.dial(ctx, to)
		if err != nil {
			return nil, err
		}
		return i.tap(c)
	}}
	proxy := httputil.ReverseProxy{
		Transport: transport, ErrorLog: i.server.ErrorLog,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", to.String(), p.In.Host
			p.SetXForwarded()
		},
	}
	proxy.ServeHTTP(w, r)
}

// tap counts a connection to a server, and reads what goes there and back.
func (i *Ingress) tap(c net.Conn) (net.Conn, error) {
	t := &tapped{Conn: c, of: i, sent: newMessages(i.seen), received: newMessages(i.seen)}
	if !i.add(t) {
		_ = c.Close()
		return nil, fmt.Errorf("the ingress controller has ended: %w", net.ErrClosed)
	}
	i.total.Add(1)
	return t, nil
}

// tapped is a connection to a server.
type tapped struct {
	net.Conn
	of             *Ingress
	sent, received *messages
	closing        sync.Once
}

func (t *tapped) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.received.read(b[:n])
	t.of.bytes.Add(int64(n))
	return n, err
}

func (t *tapped) Write(b []byte) (int, error) {
	t.sent.read(b) // before the other end has it
	t.of.bytes.Add(int64(len(b)))
	return t.Conn.Write(b)
}

func (t *tapped) Close() error {
	err := t.Conn.Close()
	t.closing.Do(func() { t.of.remove(t) })
	return err
}

// selfSigned returns a certificate that no client trusts.
func selfSigned() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: private}, err
}
