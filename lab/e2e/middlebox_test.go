package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/capture"
	"liqonet.io/liqonet/lab/faults"
	"liqonet.io/liqonet/lab/middlebox"
	"liqonet.io/liqonet/lab/netns"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// forAMinute are flags of send: nothing may be left of it when the test ends.
var forAMinute = []string{"-rounds", "300"}

// ruleTLS is the name of the rule for packets of TLS 1.3 between nodes.
const ruleTLS = "TLS 1.3"

// tlsRule allows connections between nodes that are TLS 1.3 from their first byte to the last one.
func tlsRule(declared spec.Spec) crossingRule {
	between := betweenNodes(declared)
	streams := capture.NewStreams(func(capture.Direction) func([]byte) error { return new(capture.TLS13).Read })
	return crossingRule{ruleTLS, func(p capture.Packet) bool {
		if !between(p) || talk(p) {
			return false
		}
		if q := p.Quoted; q != nil { // a node refuses a connection to a Service that has no endpoint yet
			return q.Source == p.Target && q.Protocol == capture.TCP && len(q.Payload) == 0
		}
		return p.Protocol == capture.TCP && !p.Fragment && streams.Add(p) == nil
	}}
}

// testCapture captures at the router all that the clusters exchange while WebSocket carries it.
func (x tunnels) testCapture(ctx context.Context, t *testing.T) {
	crossing := startCrossing(ctx, t, x.lab, x.declared, tlsRule(x.declared))
	crossing.enter(connected)
	conn := x.connector.connect(ctx, t, append([]string{"--transport", "websocket"}, overWebSocket...)...)
	keepSending(ctx, t, x.lab, conn, forAMinute...)
	testEveryPod(ctx, t, x.lab, conn)
	crossing.enter(disconnected) // what pods send now may leave their nodes
	x.disconnect(ctx, t)
	seen := crossing.judgeClear(t)
	if seen[ruleTLS] == 0 {
		t.Error("no packet of TLS was seen")
	}
	for rule, packets := range seen {
		if packets > 0 && (rule == ruleTunnel || strings.Contains(rule, "probed")) {
			t.Errorf("%d packets that obey rule %q, want none with --transport websocket", packets, rule)
		}
	}
}

// The ingress controller of cluster b: a host that is the name of its load balancer, in front of node b-1.
const (
	ingressHost  = "ingress.default.b.lab.test"
	ingressNode  = "b-1"
	ingressPort  = 8443
	ingressClass = "lab"
)

// testIngress connects through an ingress controller, which ends TLS. It sees nothing of what pods exchange.
func (x tunnels) testIngress(ctx context.Context, t *testing.T) {
	file := filepath.Join(t.TempDir(), "ingress.json")
	require.NoError(t, os.WriteFile(file, x.ingressService(t), 0o600))
	kubectl(ctx, t, x.lab, "b", "apply", "-f", file)
	defer kubectl(ctx, t, x.lab, "b", "delete", "-f", file)
	var behind behindTLS
	ingress, err := middlebox.StartIngress(x.namespace(ctx, t, ingressNode), netip.AddrPortFrom(x.ingressAddress(), ingressPort), x.route, behind.see)
	require.NoError(t, err)
	defer ingress.Close()
	out := x.connector.must(ctx, t, "network", "connect", "--context", "a", "--remote-context", "b", "--transport", "websocket",
		"--gw-server-ingress", ingressHost, "--gw-server-ingress-class", ingressClass, "--gw-server-ingress-annotation", "example.com/timeout=4h", "-o", "json")
	var conn connection
	require.NoError(t, json.Unmarshal([]byte(out), &conn))
	t.Logf("connect took %s", took(conn))
	keepSending(ctx, t, x.lab, conn, forAMinute...)
	testEveryPod(ctx, t, x.lab, conn)
	ingress.Cut() // as a controller that reads its configuration again
	testEveryPod(ctx, t, x.lab, conn)
	x.awaitTransport(ctx, t, faults.WebSocket)
	behind.judge(t)
	annotation := kubectl(ctx, t, x.lab, "b", "-n", "liqonet", "get", "ingress", "-o", `jsonpath={.items[*].metadata.annotations.example\.com/timeout}`)
	if annotation != "4h" {
		t.Errorf("annotation of the Ingress is %q", annotation)
	}
	x.disconnect(ctx, t)
}

// behindTLS counts the messages of WebSockets that an ingress controller has decrypted.
type behindTLS struct{ data, clear atomic.Int64 }

func (b *behindTLS) see(m middlebox.Message) {
	const binary = 2
	switch {
	case m.Err != nil || talk(capture.Packet{Frame: m.Payload}) || bytes.Contains(m.Payload, []byte(podPayload)):
		b.clear.Add(1)
	case m.Kind == binary && isWireGuard(m.Payload):
		b.data.Add(1)
	}
}

// judge fails the test if pods' packets were in the clear, or none of WireGuard was seen.
func (b *behindTLS) judge(t *testing.T) {
	t.Helper()
	t.Logf("behind TLS %d messages are WireGuard's", b.data.Load())
	if b.data.Load() == 0 || b.clear.Load() > 0 {
		t.Errorf("behind TLS %d messages are WireGuard's, %d are in the clear", b.data.Load(), b.clear.Load())
	}
}

func (x tunnels) ingressAddress() netip.Addr { return x.declared.Clusters[1].NodeAddress(1) }

// ingressService is a Service of type LoadBalancer, of which the lab's router is the load balancer, to the ingress
// controller.
func (x tunnels) ingressService(t *testing.T) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "ingress"},
			"spec": map[string]any{"type": "LoadBalancer", "ports": []any{map[string]any{"name": "https", "port": 443, "targetPort": ingressPort}}},
		},
		map[string]any{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
			"metadata":  map[string]any{"name": "ingress", "labels": map[string]any{"kubernetes.io/service-name": "ingress"}},
			"ports":     []any{map[string]any{"name": "https", "port": ingressPort}},
			"endpoints": []any{map[string]any{"addresses": []string{x.ingressAddress().String()}}},
		},
	}})
	require.NoError(t, err)
	return text
}

// route obeys the Ingresses of cluster b, as a controller of their class does.
func (x tunnels) route(ctx context.Context, host, path string) (to netip.AddrPort, err error) {
	read := func(into any, args ...string) error {
		out, err := x.lab.Kubectl(ctx, "b", append(args, "-o", "json")...)
		if err != nil {
			return err
		}
		return json.Unmarshal(out, into)
	}
	var ingresses struct {
		Items []struct {
			Metadata struct{ Namespace string }
			Spec     struct {
				IngressClassName string
				TLS              []struct{ Hosts []string }
				Rules            []struct {
					Host string
					HTTP struct {
						Paths []struct {
							Path, PathType string
							Backend        struct {
								Service struct {
									Name string
									Port struct{ Name string }
								}
							}
						}
					}
				}
			}
		}
	}
	if err := read(&ingresses, "get", "ingress", "-A"); err != nil {
		return to, err
	}
	for _, i := range ingresses.Items {
		for _, r := range i.Spec.Rules {
			for _, p := range r.HTTP.Paths {
				if i.Spec.IngressClassName != ingressClass || len(i.Spec.TLS) == 0 || r.Host != host || p.Path != path || p.PathType != "Exact" {
					continue
				}
				var service struct {
					Spec struct {
						ClusterIP string
						Ports     []struct {
							Name string
							Port uint16
						}
					}
				}
				backend := p.Backend.Service
				if err := read(&service, "-n", i.Metadata.Namespace, "get", "service", backend.Name); err != nil {
					return to, err
				}
				for _, port := range service.Spec.Ports {
					if port.Name == backend.Port.Name {
						address, err := netip.ParseAddr(service.Spec.ClusterIP)
						return netip.AddrPortFrom(address, port.Port), err
					}
				}
			}
		}
	}
	return to, fmt.Errorf("no Ingress has %s%s", host, path)
}

// testProxy connects through a proxy of the client's cluster, with a wrong password and with the right one.
func (x tunnels) testProxy(ctx context.Context, t *testing.T) {
	const user, password = "gateway", "two words: both secret"
	at := netip.AddrPortFrom(spec.OutsideHosts()[0], 3128)
	proxy, err := middlebox.StartProxy(x.namespace(ctx, t, "outside"), at, user, password)
	require.NoError(t, err)
	defer proxy.Close()
	secret := func(password string) {
		t.Helper()
		kubectl(ctx, t, x.lab, "a", "-n", "liqonet", "delete", "secret", "proxy", "--ignore-not-found")
		kubectl(ctx, t, x.lab, "a", "-n", "liqonet", "create", "secret", "generic", "proxy", "--from-literal=username="+user, "--from-literal=password="+password)
	}
	args := append([]string{"--transport", "websocket", "--gw-client-proxy", "http://" + at.String(), "--gw-client-proxy-secret", "proxy"}, overWebSocket...)
	secret("wrong")
	all := append([]string{"network", "connect", "--context", "a", "--remote-context", "b", "--gw-server-service-type", "NodePort", "--timeout", "30s"}, args...)
	if out, said, code := x.connector.run(ctx, t, all...); code != 1 || proxy.Refused() == 0 || proxy.Opened() > 0 {
		t.Errorf("a wrong password: exit code %d, %d requests refused, %d connections\n%s%s", code, proxy.Refused(), proxy.Opened(), out, said)
	}
	secret(password)
	conn := x.connector.connect(ctx, t, args...)
	testEveryPod(ctx, t, x.lab, conn)
	x.awaitTransport(ctx, t, faults.WebSocket)
	const sent = 1_000_000 // by testEveryPod, more than once
	if proxy.Opened() == 0 || proxy.Bytes() < sent {
		t.Errorf("%d connections with %d bytes passed the proxy", proxy.Opened(), proxy.Bytes())
	}
	x.disconnect(ctx, t)
	kubectl(ctx, t, x.lab, "a", "-n", "liqonet", "delete", "secret", "proxy")
}

// testBalancer connects through a machine outside that forwards TCP alone, and ends each connection once.
func (x tunnels) testBalancer(ctx context.Context, t *testing.T) {
	host := spec.OutsideHosts()[0]
	args := append([]string{"--gw-client-address", host.String(), "--gateways", "1", "--remote-gateways", "1"}, overWebSocket...)
	type started struct {
		balancer *middlebox.Balancer
		err      error
	}
	outside := x.namespace(ctx, t, "outside")
	found := make(chan started, 1)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	go func() { // the port of the nodes is known when connect has created the Service
		port, err := x.nodePort(ctx)
		if err != nil {
			found <- started{nil, err}
			return
		}
		b, err := middlebox.StartBalancer(outside, netip.AddrPortFrom(host, port), netip.AddrPortFrom(x.ingressAddress(), port))
		found <- started{b, err}
	}()
	conn := x.connector.connect(ctx, t, args...)
	s := <-found
	require.NoError(t, s.err)
	defer s.balancer.Close()
	testEveryPod(ctx, t, x.lab, conn)
	s.balancer.Cut()
	testEveryPod(ctx, t, x.lab, conn)
	x.awaitTransport(ctx, t, faults.WebSocket)
	if s.balancer.Opened() < 2 {
		t.Errorf("%d connections passed the load balancer, want one more after the first was cut", s.balancer.Opened())
	}
	x.disconnect(ctx, t)
}

// nodePort waits for the port of the nodes of the server's first gateway.
func (x tunnels) nodePort(ctx context.Context) (uint16, error) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		out, err := x.lab.Kubectl(ctx, "b", "-n", "liqonet", "get", "service", "websocket-a", "-o", "jsonpath={.spec.ports[0].nodePort}")
		if port, parsed := strconv.ParseUint(string(out), 10, 16); err == nil && parsed == nil && port > 0 {
			return uint16(port), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for the port of Service websocket-a: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// namespace is that of a node or machine, until the test ends.
func (x tunnels) namespace(ctx context.Context, t *testing.T, place string) *netns.Namespace {
	t.Helper()
	ns, err := x.lab.Namespace(ctx, place)
	require.NoError(t, err)
	t.Cleanup(func() { ns.Close() })
	return ns
}
