package translation

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/translation/authority"
)

// Tokens of the tests, by what their owners may ask.
const (
	all     = "may-ask-all"
	onlyB   = "may-ask-about-b"
	nothing = "may-ask-nothing"
	foreign = "for-the-api-server" // valid, and not for the service's audience
)

// apiServer is a fake one that knows the tokens.
type apiServer struct {
	*fake.Clientset
	reviews atomic.Int32
	down    atomic.Bool
}

func newAPIServer(objects ...runtime.Object) *apiServer {
	s := &apiServer{Clientset: fake.NewClientset(objects...)}
	s.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.reviews.Add(1)
		if s.down.Load() {
			return true, nil, errors.New("connection refused")
		}
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		if !slices.Equal(review.Spec.Audiences, []string{"translation.liqonet.io"}) {
			return true, nil, errors.New("no audience is asked for")
		}
		switch token := review.Spec.Token; token {
		case all, onlyB, nothing:
			review.Status = authenticationv1.TokenReviewStatus{
				Authenticated: true, Audiences: review.Spec.Audiences,
				User: authenticationv1.UserInfo{Username: "system:serviceaccount:shop:" + token, Groups: []string{"system:serviceaccounts"}},
			}
		case foreign:
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "admin"}}
		}
		return true, review, nil
	})
	s.PrependReactor("create", "localsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.LocalSubjectAccessReview).DeepCopy()
		what := *review.Spec.ResourceAttributes
		peer := what.Name
		what.Name = ""
		if want := (authorizationv1.ResourceAttributes{Namespace: "liqonet", Verb: "get", Group: "liqonet.io", Resource: "translations"}); what != want ||
			action.GetNamespace() != "liqonet" || !slices.Contains(review.Spec.Groups, "system:serviceaccounts") {
			return true, nil, errors.New("something else is asked")
		}
		review.Status.Allowed = strings.HasSuffix(review.Spec.User, all) || strings.HasSuffix(review.Spec.User, onlyB) && peer == "b"
		return true, review, nil
	})
	return s
}

// record is the ConfigMap with a record of ipam/translate's testdata, after replacements.
func record(t testing.TB, name string, replacements ...string) *corev1.ConfigMap {
	t.Helper()
	component, file := records.ComponentPeering, "peering-b.yaml"
	if name == records.FabricName {
		component, file = records.ComponentFabric, "fabric.yaml"
	}
	text, err := os.ReadFile("../../ipam/translate/testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqonet", Name: name, Labels: map[string]string{records.LabelComponent: component}},
		Data:       map[string]string{records.DataKey: strings.NewReplacer(replacements...).Replace(string(text))},
	}
}

// cluster is one with peers b and c, the latter with two pod CIDRs of which one is not translated.
func cluster(t testing.TB) []runtime.Object {
	return []runtime.Object{
		record(t, "fabric"), record(t, "peering-b"),
		record(t, "peering-c", "name: b", "name: c", "10.81.0.0/16", "10.83.0.0/16", "externalCIDR:\n    real: 10.70.0.0/16\n    seen: 10.82.0.0/16",
			"externalCIDR:\n    real: 10.70.0.0/16\n    seen: 10.70.0.0/16",
			"  - real: 10.244.0.0/16\n    seen: 10.71.0.0/16", "  - real: 10.244.0.0/16\n    seen: 10.73.0.0/16\n  - real: 10.99.0.0/16\n    seen: 10.99.0.0/16"),
	}
}

// running is a service that runs.
type running struct {
	*apiServer
	url       string
	authority authority.Authority
	client    *http.Client
}

const host = "translation.liqonet.svc"

// start runs the service until the test ends.
func start(t *testing.T, objects ...runtime.Object) *running {
	t.Helper()
	a, err := authority.New(host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{apiServer: newAPIServer(objects...), url: "https://" + listener.Addr().String(), authority: a}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS13}}
	r.client = &http.Client{Transport: transport}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Service{Client: r.Clientset, Namespace: "liqonet", Authority: a, Log: slog.New(slog.DiscardHandler)}.serve(ctx, listener)
	}()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the service ended with: %v", err)
		}
	})
	return r
}

// ready waits until the service has read its records.
func (r *running) ready(t *testing.T) {
	t.Helper()
	r.await(t, "/readyz", http.StatusOK, "{}\n")
}

// await asks until the answer is as wanted.
func (r *running) await(t *testing.T, path string, status int, want string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(5 * time.Minute)
	for {
		got, body := r.get(t, all, path)
		if got == status && strings.Contains(body, want) {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("%s: %d %s, want %d %s", path, got, body, status, want)
		}
	}
}

// get asks with a token ("": without), and compares the answer with the document.
func (r *running) get(t *testing.T, token, path string) (status int, body string) {
	t.Helper()
	return r.send(t, r.request(t, token, http.MethodGet, path, nil))
}

func (r *running) request(t *testing.T, token, method, path string, body []byte) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

func (r *running) send(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	answer, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	document(t).compare(t, req, answer, text)
	return answer.StatusCode, string(text)
}
