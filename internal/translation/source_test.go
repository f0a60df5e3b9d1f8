package translation

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"crypto/tls"
	"crypto/x509"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/internal/records"
)

// TestFollowsRecords: the service answers from what the records say now, and refuses what they do not say.
func TestFollowsRecords(t *testing.T) {
	r := start(t)
	maps := r.CoreV1().ConfigMaps("liqonet")
	put := func(o *corev1.ConfigMap) {
		t.Helper()
		_, err := maps.Update(t.Context(), o, metav1.UpdateOptions{})
		if err != nil {
			_, err = maps.Create(t.Context(), o, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const b, c, whose = "/v1/peers/b/import?address=10.244.1.7", "/v1/peers/c/import?address=10.244.1.7", "/v1/whose?address=10.71.1.7"
	r.await(t, "/readyz", http.StatusServiceUnavailable, "not installed")
	r.await(t, b, http.StatusServiceUnavailable, "not installed")
	put(record(t, "fabric"))
	r.await(t, "/readyz", http.StatusOK, "")
	r.await(t, b, http.StatusNotFound, "unknown-peer")
	r.await(t, "/v1/peers", http.StatusOK, `{"peers":[]}`)
	put(record(t, "peering-b"))
	r.await(t, b, http.StatusOK, "10.71.1.7")
	put(record(t, "peering-b", "10.71.0.0", "10.74.0.0"))
	r.await(t, b, http.StatusOK, "10.74.1.7")
	// One record cannot be read: the others' answers stay, and what may be its peer's is not called nobody's.
	put(record(t, "peering-b"))
	put(record(t, "peering-c", "version: 1", "version: 7"))
	r.await(t, c, http.StatusServiceUnavailable, "schema version 7")
	r.await(t, b, http.StatusOK, "10.71.1.7")
	r.await(t, whose, http.StatusOK, "10.244.1.7")
	r.await(t, "/v1/whose?address=10.73.1.7", http.StatusServiceUnavailable, "damaged")
	r.await(t, "/v1/peers", http.StatusServiceUnavailable, "damaged")
	r.await(t, "/readyz", http.StatusOK, "")
	put(record(t, "peering-c")) // the record of b, under the name of c
	r.await(t, c, http.StatusServiceUnavailable, "damaged")
	put(record(t, "peering-c", "name: b", "name: c")) // by the same addresses as b
	r.await(t, b, http.StatusServiceUnavailable, "overlaps")
	for _, name := range []string{"peering-c", "peering-b"} {
		if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.await(t, b, http.StatusNotFound, "unknown-peer")
	put(record(t, "fabric", "version: 1", "version: 7"))
	r.await(t, "/readyz", http.StatusServiceUnavailable, "schema version 7")
}

// TestLabelsDecideNothing: an object whose labels say that it is another one, as a gateway may write them, changes nothing.
func TestLabelsDecideNothing(t *testing.T) {
	want := newView(configMaps(cluster(t)))
	for _, component := range []string{records.ComponentFabric, records.ComponentPeering} {
		for _, as := range []string{"fabric", "peering-b"} {
			forged := record(t, as, "10.70.0.0/16", "10.90.0.0/16")
			forged.Name, forged.Labels = "gateway-b", map[string]string{records.LabelComponent: component, records.LabelPeering: "b"}
			got := newView(append(configMaps(cluster(t)), forged))
			if got.err != nil || got.cluster.Damage() != nil || !slices.Equal(got.cluster.Peers(), want.cluster.Peers()) {
				t.Errorf("%s as %s: %v, %v, peers %v", as, component, got.err, got.cluster.Damage(), got.cluster.Peers())
			}
		}
	}
}

func configMaps(objects []runtime.Object) []*corev1.ConfigMap {
	var all []*corev1.ConfigMap
	for _, o := range objects {
		all = append(all, o.(*corev1.ConfigMap))
	}
	return all
}

// TestBeforeTheRecordsAreRead: a service that has only begun says so, and not that there is no such peer.
func TestBeforeTheRecordsAreRead(t *testing.T) {
	h := direct{newHandler(func() *view { return nil }, newGate(newAPIServer(), "liqonet"), slog.New(slog.DiscardHandler))}
	for _, path := range []string{"/readyz", "/v1/peers", "/v1/peers/b/import"} {
		if status, body := h.ask(t, http.MethodGet, path, "address=10.244.1.7", nil); status != http.StatusServiceUnavailable || !strings.Contains(string(body), "unavailable") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// TestWhatIsNotSpoken: the service is known by its certificate, and old versions of TLS are refused.
func TestWhatIsNotSpoken(t *testing.T) {
	r := start(t, cluster(t)...)
	r.ready(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.authority.Certificate())
	for what, c := range map[string]*tls.Config{
		"a client that does not trust the authority": {ServerName: host},
		"a client of another server":                 {ServerName: "kubernetes.default.svc", RootCAs: roots},
		"TLS 1.2":                                    {ServerName: host, RootCAs: roots, MaxVersion: tls.VersionTLS12},
	} {
		transport := &http.Transport{TLSClientConfig: c}
		answer, err := (&http.Client{Transport: transport}).Do(r.request(t, all, http.MethodGet, "/openapi.json", nil))
		if err == nil {
			answer.Body.Close()
			t.Errorf("%s: %s", what, answer.Status)
		}
	}
	if answer, err := r.client.Do(r.request(t, strings.Repeat("x", 2*maxHeader), http.MethodGet, "/v1/peers", nil)); err == nil {
		if answer.Body.Close(); answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a header larger than is read: %s", answer.Status)
		}
	}
}

// BenchmarkRequest is one question from one whose right is known, without the connection.
func BenchmarkRequest(b *testing.B) {
	h := quickHandler(b)
	req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/v1/peers/b/export?address=10.244.1.7", nil)
	req.Header.Set("Authorization", "Bearer "+all)
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
