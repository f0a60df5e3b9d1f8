package translation

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// direct asks a handler without a connection.
type direct struct{ *handler }

// quickHandler lets a request with token "may-ask-all" in without asking anyone.
func quickHandler(t testing.TB) direct {
	t.Helper()
	var objects []*corev1.ConfigMap
	for _, o := range cluster(t) {
		objects = append(objects, o.(*corev1.ConfigMap))
	}
	v := newView(objects)
	return direct{newHandler(func() *view { return &v }, newGate(newAPIServer(), "liqonet"), slog.New(slog.DiscardHandler))}
}

func (d direct) ask(t *testing.T, method, path, query string, body []byte) (int, []byte) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(body))
	req.URL = &url.URL{Path: path, RawQuery: query}
	req.Header.Set("Authorization", "Bearer "+all)
	req.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	answer := w.Result()
	defer answer.Body.Close()
	document(t).compare(t, req, answer, w.Body.Bytes())
	return w.Code, w.Body.Bytes()
}

func TestWhoMayAsk(t *testing.T) {
	r := start(t, cluster(t)...)
	r.ready(t)
	const one, every = "/v1/peers/b/import?address=10.244.1.7", "/v1/whose?address=10.71.1.7"
	for _, q := range []struct {
		token, path string
		status      int
	}{
		{all, one, http.StatusOK}, {all, every, http.StatusOK}, {all, "/v1/peers", http.StatusOK},
		{onlyB, one, http.StatusOK}, {onlyB, every, http.StatusForbidden}, {onlyB, "/v1/peers", http.StatusForbidden},
		{onlyB, "/v1/peers/c/import?address=10.244.1.7", http.StatusForbidden},
		{nothing, one, http.StatusForbidden}, {nothing, "/v1/peers/x/import?address=10.244.1.7", http.StatusForbidden},
		{"", one, http.StatusUnauthorized}, {"made-up", one, http.StatusUnauthorized}, {foreign, one, http.StatusUnauthorized},
		{"", "/openapi.json", http.StatusOK}, {"", "/livez", http.StatusOK}, {"", "/readyz", http.StatusOK},
	} {
		if status, body := r.get(t, q.token, q.path); status != q.status {
			t.Errorf("%q asks %s: %d %.200s, want %d", q.token, q.path, status, body, q.status)
		}
	}
	req := r.request(t, nothing, http.MethodPost, "/v1/peers/b/export/endpointslice", bytes.Repeat([]byte("x"), maxBody+1))
	if status, _ := r.send(t, req); status != http.StatusForbidden {
		t.Errorf("a body of one who may not ask: %d", status)
	}
	req = r.request(t, "", http.MethodGet, one, nil)
	for _, header := range []string{"Basic " + all, all, "Bearer", "bearer  "} {
		req.Header.Set("Authorization", header)
		if status, _ := r.send(t, req); status != http.StatusUnauthorized {
			t.Errorf("%q: %d", header, status)
		}
	}
	req.Header.Set("Authorization", "bearer "+all) // RFC 9110, 11.1: the scheme's case is no matter
	if status, _ := r.send(t, req); status != http.StatusOK {
		t.Errorf("scheme in lower case: %d", status)
	}
}

// TestDecisionsAreRemembered for a short time: one review serves many requests, and a right that is withdrawn does
// not last. Failures to ask are not remembered.
func TestDecisionsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		g := newGate(server, "liqonet")
		admit := func(token, peer string) error {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			return g.admit(r, peer)
		}
		server.down.Store(true)
		if err := admit(all, "b"); err == nil || problemOf(err).status != http.StatusServiceUnavailable {
			t.Errorf("the API server is down: %v", err)
		}
		server.down.Store(false)
		server.reviews.Store(0)
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				if err := admit(all, "b"); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := server.reviews.Load(); n > reviewsAtOnce {
			t.Errorf("%d reviews for 100 requests with one token", n)
		}
		server.reviews.Store(0)
		time.Sleep(remembered - time.Second) //nolint:forbidigo // in a bubble of synctest this advances the clock
		if err := admit(all, "b"); err != nil || server.reviews.Load() != 0 {
			t.Errorf("%v, after %d reviews", err, server.reviews.Load())
		}
		if err := admit(nothing, "b"); err == nil || admit(nothing, "b") == nil || server.reviews.Load() != 1 {
			t.Errorf("%v, after %d reviews", err, server.reviews.Load())
		}
		server.down.Store(true)
		time.Sleep(remembered) //nolint:forbidigo // as above
		if err := admit(all, "b"); err == nil {
			t.Error("a decision is remembered for longer than it holds")
		}
		for i := range 2 * maxDecisions {
			g.decisions.Add(question{peer: strconv.Itoa(i)}, (*Problem)(nil), remembered)
		}
		if n := len(g.decisions.Keys()); n > maxDecisions {
			t.Errorf("%d decisions are kept", n)
		}
	})
}
