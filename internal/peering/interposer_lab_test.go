//go:build lab

package peering

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

// fault wraps the handler of an API server; nil: no fault.
type fault func(server http.Handler) http.Handler

// interpose serves an API server in plain HTTP, with the permissions of its configuration's user, until the test ends,
// and returns the URL.
func interpose(t *testing.T, config *rest.Config, f fault) string {
	t.Helper()
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	host, err := url.Parse(config.Host)
	require.NoError(t, err)
	var handler http.Handler = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(host) },
		Transport:     transport,
		FlushInterval: -1,                         // for watches
		ErrorLog:      log.New(io.Discard, "", 0), // of killed clients
	}
	if f != nil {
		handler = f(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// hideInstallations hides other installations, beside which an installation is rejected: many tests share a cluster.
func hideInstallations(namespace string, f fault) fault {
	const all = "/apis/apps/v1/daemonsets"
	return func(server http.Handler) http.Handler {
		if f != nil {
			server = f(server)
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == all && r.URL.Query().Has("labelSelector") {
				r.URL.Path = "/apis/apps/v1/namespaces/" + namespace + "/daemonsets"
			}
			server.ServeHTTP(w, r)
		})
	}
}

// writes reports whether a request changes anything. Renewals of a run's lock do not count, as their number depends on
// its duration.
func writes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return false
	}
	if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, lockPath) {
		return false
	}
	return !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") && !r.URL.Query().Has("dryRun")
}

// lockPath is the end of the lock's path.
const lockPath = "/leases/" + records.LockName

// signalling sends signals to a process when a write, counted over all API servers, is complete and the process has not
// received the response.
type signalling struct {
	signals map[int]os.Signal // by the number of the write, from 1
	send    func(os.Signal)

	mu   sync.Mutex
	seen []string // the writes
}

// fault counts the writes to one API server.
func (s *signalling) fault(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !writes(r) {
			server.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r)
		s.count(r.Method + " " + r.URL.Path)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the client may be gone
	})
}

func (s *signalling) count(write string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, write)
	if signal, ok := s.signals[len(s.seen)]; ok {
		s.send(signal)
	}
}

// total returns the number of writes.
func (s *signalling) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}
