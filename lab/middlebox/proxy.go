package middlebox

import (
	"crypto/subtle"
	"encoding/base64"
	"io"
	"net/http"
	"net/netip"
	"sync/atomic"

	"liqonet.io/liqonet/lab/netns"
)

// Proxy is an HTTP proxy for method CONNECT (RFC 9110, section 9.3.6) that asks for a password.
type Proxy struct {
	connections
	server  *http.Server
	want    string // of Proxy-Authorization
	refused atomic.Int64
}

// StartProxy serves the users of one name and password.
func StartProxy(ns *netns.Namespace, at netip.AddrPort, user, password string) (*Proxy, error) {
	l, err := listen(ns, at)
	if err != nil {
		return nil, err
	}
	p := &Proxy{connections: connections{ns: ns}, want: "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: headerWithin}
	go func() { _ = p.server.Serve(l) }() // until Close
	return p, nil
}

// Refused is the number of requests without the password.
func (p *Proxy) Refused() int { return int(p.refused.Load()) }

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.close()
	return err
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Proxy-Authorization")), []byte(p.want)) == 0 {
		p.refused.Add(1)
		w.Header().Set("Proxy-Authenticate", `Basic realm="lab"`)
		http.Error(w, "a password, please", http.StatusProxyAuthRequired)
		return
	}
	if r.Method != http.MethodConnect {
		http.Error(w, "CONNECT alone", http.StatusMethodNotAllowed)
		return
	}
	to, err := netip.ParseAddrPort(r.Host)
	if err != nil {
		http.Error(w, "an address, please: the lab's proxy looks up no names", http.StatusBadRequest)
		return
	}
	server, err := p.dial(r.Context(), to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, begun, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = server.Close()
		return
	}
	if _, err := client.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		_, _ = client.Close(), server.Close()
		return
	}
	p.splice(client, server, io.LimitReader(begun, int64(begun.Reader.Buffered())))
}
