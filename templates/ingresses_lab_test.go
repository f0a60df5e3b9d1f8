//go:build lab

package templates

import (
	"net/http"
	"strings"
	"testing"
)

// testIngresses checks that an Ingress of liqonet takes no requests of others.
func testIngresses(t *testing.T, a apiServer) {
	const ingresses = "/apis/networking.k8s.io/v1/namespaces/" + policed + "/ingresses"
	ingress := func(spec string) string { return `{"metadata":{"name":"x"},"spec":{` + spec + `}}` }
	rule := func(path, service string) string {
		return `"rules":[{"host":"a.example","http":{"paths":[{"path":"` + path + `","pathType":"Exact","backend":{"service":{"name":"` + service + `","port":{"name":"websocket"}}}}]}}]`
	}
	own := rule("/liqonet/b/1", "websocket-b")
	a.try(t, []attempt{
		{"an Ingress", http.MethodPost, ingresses + dry, ingress(own + `,"tls":[{"hosts":["a.example"],"secretName":"x"}]`), ""},
		{"an Ingress of all requests", http.MethodPost, ingresses + dry, ingress(own + `,"defaultBackend":{"service":{"name":"websocket-b","port":{"name":"websocket"}}}`), "by paths below"},
		{"an Ingress of a host", http.MethodPost, ingresses + dry, ingress(rule("/", "websocket-b")), "by paths below"},
		{"an Ingress of a prefix", http.MethodPost, ingresses + dry, ingress(strings.Replace(own, "Exact", "Prefix", 1)), "by paths below"},
		{"an Ingress to another Service", http.MethodPost, ingresses + dry, ingress(rule("/liqonet/b/1", "test-server")), "by paths below"},
		{"an Ingress without paths", http.MethodPost, ingresses + dry, ingress(`"rules":[{"host":"a.example"}]`), "by paths below"},
		{"a certificate of another host", http.MethodPost, ingresses + dry, ingress(own + `,"tls":[{"hosts":["b.example"]}]`), "certificates of their own hosts"},
	})
}
