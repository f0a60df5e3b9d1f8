package translation

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestQuestions(t *testing.T) {
	r := start(t, cluster(t)...)
	r.ready(t)
	for _, q := range []struct{ path, given, want, peer, kind string }{
		{"/v1/peers/b/import", "10.244.1.7", "10.71.1.7", "b", "pod"},
		{"/v1/peers/b/import", "10.70.0.3", "10.81.0.3", "b", "node"},
		{"/v1/peers/b/import", "10.70.200.1", "10.81.200.1", "b", "exposed"},
		{"/v1/peers/b/imported-from", "10.71.1.7", "10.244.1.7", "b", "pod"},
		{"/v1/peers/b/export", "10.244.1.7", "10.72.1.7", "b", "pod"},
		{"/v1/peers/b/export", "10.80.0.3", "10.82.0.3", "b", "node"},
		{"/v1/peers/b/exported-from", "10.82.0.3", "10.80.0.3", "b", "node"},
		{"/v1/peers/c/import", "10.244.1.7", "10.73.1.7", "c", "pod"},
		{"/v1/peers/c/import", "10.99.1.7", "10.99.1.7", "c", "pod"}, // its other range
		{"/v1/whose", "10.71.1.7", "10.244.1.7", "b", "pod"},
		{"/v1/whose", "10.73.1.7", "10.244.1.7", "c", "pod"},
		{"/v1/whose", "10.99.1.7", "10.99.1.7", "c", "pod"},
		{"/v1/whose", "10.83.0.3", "10.70.0.3", "c", "node"},
	} {
		status, body := r.get(t, all, q.path+"?address="+q.given)
		var got Answer
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != http.StatusOK || len(got.Addresses) != 1 {
			t.Errorf("%s of %s: %d %s", q.path, q.given, status, body)
			continue
		}
		a := got.Addresses[0]
		if a.Given.String() != q.given || a.Translated.String() != q.want || a.Peer != q.peer || string(a.Kind) != q.kind {
			t.Errorf("%s of %s: %+v, want %s, a %s of %s", q.path, q.given, a, q.want, q.kind, q.peer)
		}
	}
	if status, body := r.get(t, all, "/v1/peers"); status != http.StatusOK || body != `{"peers":["b","c"]}`+"\n" {
		t.Errorf("peers: %d %s", status, body)
	}
	status, body := r.get(t, all, "/v1/peers/b/import?address=10.244.2.2&address=10.244.1.1")
	if want := `"10.71.2.2"`; status != http.StatusOK || !strings.Contains(body, want) || strings.Index(body, want) > strings.Index(body, `"10.71.1.1"`) {
		t.Errorf("two addresses: %d %s", status, body)
	}
}

func TestRefusals(t *testing.T) {
	r := start(t, append(cluster(t), record(t, "peering-d", "name: b", "name: d", "10.81.0.0/16", "10.85.0.0/16", "10.71.0.0/16", "10.75.0.0/16",
		"local:\n  podCIDRs:\n  - real: 10.244.0.0/16\n    seen: 10.72.0.0/16\n  externalCIDR:\n    real: 10.70.0.0/16\n    seen: 10.82.0.0/16\n", ""))...)
	r.ready(t)
	for _, q := range []struct {
		path         string
		status       int
		reason, want string
	}{
		{"/v1/whose?address=192.0.2.1", http.StatusNotFound, "unmapped", "192.0.2.1"},
		{"/v1/whose?address=10.244.1.7", http.StatusNotFound, "unmapped", "10.244.1.7"}, // this cluster's own
		{"/v1/peers/b/export?address=10.244.1.7&address=192.0.2.1", http.StatusNotFound, "unmapped", "192.0.2.1"},
		{"/v1/peers/b/import?address=fd00::1", http.StatusNotFound, "unmapped", "fd00::1"},
		{"/v1/peers/b/import?address=::ffff:10.244.1.7", http.StatusNotFound, "unmapped", "10.244.1.7"},
		{"/v1/peers/x/import?address=10.244.1.7", http.StatusNotFound, "unknown-peer", `\"x\"`},
		{"/v1/peers/..%2f/import?address=10.244.1.7", http.StatusNotFound, "unknown-peer", "peering"},
		{"/v1/peers/d/export?address=10.244.1.7", http.StatusConflict, "untold", "connect --update"},
		{"/v1/peers/b/import", http.StatusBadRequest, "bad-request", "0 addresses"},
		{"/v1/peers/b/import?address=web", http.StatusBadRequest, "bad-request", `\"web\"`},
		{"/v1/peers/b/import?address=10.244.1.0/24", http.StatusBadRequest, "bad-request", "10.244.1.0/24"},
		{"/v1/peers/b/import?" + strings.Repeat("address=10.1.1.1&", 257), http.StatusBadRequest, "bad-request", "257 addresses"},
		{"/v1/peers/b/export/endpointslice", http.StatusMethodNotAllowed, "bad-request", "want POST"},
		{"/v1/peers/b", http.StatusNotFound, "no-such-path", "openapi.json"},
		{"/", http.StatusNotFound, "no-such-path", "openapi.json"},
	} {
		if q.status == http.StatusMethodNotAllowed {
			q.path += "?" // a GET of what the document has a POST for
		}
		status, body := r.get(t, all, q.path)
		if status != q.status || !strings.Contains(body, `"reason":"`+q.reason+`"`) || !strings.Contains(body, q.want) {
			t.Errorf("%.80s: %d %s, want %d %s %s", q.path, status, body, q.status, q.reason, q.want)
		}
	}
}

// slice is an EndpointSlice with one endpoint for each address.
func slice(t testing.TB, addresses ...string) []byte {
	t.Helper()
	s := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEndpointSlices(t *testing.T) {
	r := start(t, cluster(t)...)
	r.ready(t)
	for way, want := range map[string]string{"export": "10.72.1.7", "import": "10.71.1.7"} {
		status, body := r.send(t, r.request(t, all, http.MethodPost, "/v1/peers/b/"+way+"/endpointslice", slice(t, "10.244.1.7", "10.244.2.9")))
		// The API server's own decoder reads it.
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(body), nil, nil)
		got, ok := object.(*discoveryv1.EndpointSlice)
		if err != nil || !ok || status != http.StatusOK {
			t.Fatalf("%s: %d, %v, %s", way, status, err, body)
		}
		if got.Endpoints[0].Addresses[0] != want || got.Labels[discoveryv1.LabelManagedBy] != "liqonet.io" || len(got.Endpoints) != 2 {
			t.Errorf("%s: %s", way, body)
		}
	}
	const path = "/v1/peers/b/export/endpointslice"
	good := slice(t, "10.244.1.7")
	large := bytes.Repeat([]byte(" "), maxBody+1)
	for what, q := range map[string]struct {
		body   []byte
		kind   string
		status int
		want   string
	}{
		"an address of nobody":   {slice(t, "10.244.1.7", "192.0.2.1"), contentType, http.StatusNotFound, "unmapped"},
		"no address":             {slice(t, "web"), contentType, http.StatusBadRequest, "web"},
		"IPv6":                   {bytes.Replace(good, []byte("IPv4"), []byte("IPv6"), 1), contentType, http.StatusBadRequest, "only IPv4"},
		"of no Service":          {bytes.Replace(good, []byte("service-name"), []byte("x"), 1), contentType, http.StatusBadRequest, "no Service"},
		"something else":         {[]byte(`{"apiVersion":"v1","kind":"Service"}`), contentType, http.StatusBadRequest, "want an EndpointSlice"},
		"no JSON":                {[]byte("{"), contentType, http.StatusBadRequest, "no EndpointSlice"},
		"two":                    {append(good, good...), contentType, http.StatusBadRequest, "no EndpointSlice"},
		"nothing":                {nil, contentType, http.StatusBadRequest, "no EndpointSlice"},
		"YAML":                   {good, "application/yaml", http.StatusUnsupportedMediaType, "want application/json"},
		"more than is read":      {large, contentType, http.StatusRequestEntityTooLarge, "too-large"},
		"a charset is no matter": {good, "application/json; charset=utf-8", http.StatusOK, "10.72.1.7"},
	} {
		req := r.request(t, all, http.MethodPost, path, q.body)
		req.Header.Set("Content-Type", q.kind)
		if status, body := r.send(t, req); status != q.status || !strings.Contains(body, q.want) {
			t.Errorf("%s: %d %.200s, want %d %s", what, status, body, q.status, q.want)
		}
	}
}

// FuzzQuery asks for whatever a client may write: every answer is one of the document's, and what is answered is the
// translation of what was given.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"address=10.244.1.7", "address=10.244.1.7&address=%31", "address=fe80::1%25eth0", "address", "a;b", "%zz", "address=0.0.0.0"} {
		f.Add(seed)
	}
	h := quickHandler(f)
	f.Fuzz(func(t *testing.T, query string) {
		status, body := h.ask(t, http.MethodGet, "/v1/peers/b/export", query, nil)
		if status != http.StatusOK {
			return
		}
		var answer Answer
		if err := json.Unmarshal(body, &answer); err != nil || len(answer.Addresses) == 0 {
			t.Fatalf("%v in %s", err, body)
		}
		real, seen := netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("10.72.0.0/16")
		for _, a := range answer.Addresses {
			if a.Kind == "pod" && (!real.Contains(a.Given) || !seen.Contains(a.Translated)) {
				t.Errorf("%s is called %s", a.Given, a.Translated)
			}
		}
	})
}

// FuzzEndpointSlice sends whatever a client may: every answer is one of the document's, and no address of a slice
// that is answered stays as it was.
func FuzzEndpointSlice(f *testing.F) {
	for _, seed := range [][]byte{slice(f, "10.244.1.7"), slice(f), []byte("{}"), []byte("[]"), []byte(`"`), nil} {
		f.Add(seed)
	}
	h := quickHandler(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		status, answer := h.ask(t, http.MethodPost, "/v1/peers/b/export/endpointslice", "", body)
		if status != http.StatusOK {
			return
		}
		var s discoveryv1.EndpointSlice
		if err := json.Unmarshal(answer, &s); err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Endpoints {
			for _, text := range e.Addresses {
				a, err := netip.ParseAddr(text)
				if err != nil || netip.MustParsePrefix("10.244.0.0/16").Contains(a) {
					t.Errorf("address %q in %s", text, answer)
				}
			}
		}
	})
}
