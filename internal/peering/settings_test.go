package peering

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// fullOptions returns options with all settings of a peering.
func fullOptions(a, b *fakecluster.Cluster) ConnectOptions {
	o := connectOptions(a, b)
	o.ServiceType, o.ServicePort, o.NodePort = new(records.LoadBalancer), new(uint16(50000)), new(uint16(31000))
	o.LoadBalancerIP, o.ServiceAnnotations = new(netip.MustParseAddr("203.0.113.7")), map[string]string{"example.org/internal": "true", "example.org/empty": ""}
	o.EndpointHost, o.EndpointPort, o.MTU = new("203.0.113.7"), new(uint16(40000)), new(1200)
	return o
}

// TestSettingsStay: the user's settings remain after a rotation, although that adds gateways, and after a connect
// without settings.
func TestSettingsStay(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*ConnectOptions){
		"none": func(*ConnectOptions) {},
		"ports": func(o *ConnectOptions) {
			o.NodePort, o.ServicePort, o.ServiceAnnotations = new(uint16(31000)), new(uint16(50000)), map[string]string{"example.org/internal": "true", "example.org/empty": ""}
		},
		"load balancer": func(o *ConnectOptions) {
			o.ServiceType, o.LoadBalancerIP = new(records.LoadBalancer), new(netip.MustParseAddr("203.0.113.7"))
			o.EndpointHost = new("203.0.113.7")
		},
		"endpoint":          func(o *ConnectOptions) { o.EndpointHost, o.EndpointPort = new("vpn.example.org"), new(uint16(40000)) },
		"address, not port": func(o *ConnectOptions) { o.EndpointHost = new("198.51.100.7") },
		"of the tunnel": func(o *ConnectOptions) {
			o.MTU, o.ClampMSS, o.Implementation = new(1200), new(false), new(records.Userspace)
		},
		"WebSocket": func(o *ConnectOptions) {
			o.WebSocket, o.WebSocketPort, o.Proxy, o.ProxySecret = new(true), new(uint16(8443)), new("http://proxy.example.com:3128"), new("proxy")
		},
		"an Ingress alone": func(o *ConnectOptions) {
			o.Transport, o.Ingress, o.IngressAnnotations = new(records.WebSocket), new("in.example.com"), map[string]string{"example.org/a": "b"}
		},
		"the other way around": func(o *ConnectOptions) { o.LocalServes, o.GatewayMode = new(true), new(records.ActiveStandby) },
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := fakecluster.RunPair(t)
			o := connectOptions(a, b)
			set(&o)
			fakecluster.Must(t, Connect, o)
			before := publicKey(t, a, "b", 1)
			open := o
			open.Options, open.Update = Options{}, true
			checkUnchanged(t, open)
			fakecluster.Must(t, RotateKeys, rotateOptions(a, b))
			if publicKey(t, a, "b", 1) == before {
				t.Error("the key is the old one")
			}
			checkUnchanged(t, open)
			changesNothing(t, o)
		})
	}
}

// checkUnchanged checks that a connect has nothing to change.
func checkUnchanged(t *testing.T, o ConnectOptions) {
	t.Helper()
	plan := fakecluster.Must(t, PlanConnect, o)
	for _, c := range plan.Differing().Clusters {
		if len(c.Changes) > 0 {
			t.Errorf("plan:\n%s", c)
		}
	}
}

// TestSettingsChange: new settings replace existing ones, and remove those that are incompatible with them.
func TestSettingsChange(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(*Options)
		check func(t *testing.T, server *corev1.Service, p records.Peering) bool // p is the client's
	}{
		"NodePort": {
			func(o *Options) { o.ServiceType = new(records.NodePort) },
			func(_ *testing.T, s *corev1.Service, _ records.Peering) bool {
				return s.Spec.Type == corev1.ServiceTypeNodePort && s.Spec.LoadBalancerIP == "" && s.Spec.Ports[0].Port == 50000 &&
					s.Spec.Ports[0].NodePort == 31000 && s.Annotations["example.org/internal"] == "true"
			},
		},
		"defaults": {
			func(o *Options) {
				o.MTU, o.EndpointPort, o.ServiceAnnotations = new(0), new(uint16(0)), map[string]string{}
				o.LoadBalancerIP = new(netip.IPv4Unspecified())
			},
			func(_ *testing.T, s *corev1.Service, p records.Peering) bool {
				return s.Annotations["example.org/internal"] == "" && s.Spec.LoadBalancerIP == "" && p.MTU == 1420 &&
					tunnelOf(p).Endpoints[0] == "203.0.113.7:50000" && reflect.DeepEqual(p.Settings, records.GatewaySettings{
					ServicePort: new(uint16(50000)), NodePort: new(uint16(31000)), EndpointHost: new("203.0.113.7"),
				})
			},
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := fakecluster.RunPair(t)
			o := fullOptions(a, b)
			fakecluster.Must(t, Connect, o)
			o.Options, o.Update = Options{}, true
			c.set(&o.Options)
			fakecluster.Must(t, Connect, o)
			s, err := kube.Find[*corev1.Service](t.Context(), b.Cluster, records.ServiceName("a"))
			if p := a.Peering(t); err != nil || !c.check(t, s, p) {
				t.Errorf("Service %+v, annotations %v, record %+v, %v", s.Spec, s.Annotations, p, err)
			}
		})
	}
}

// TestAnotherServer: a new server has a Service and an endpoint of its own. If a change of the server was interrupted,
// liqoctl does not guess the server.
func TestAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := fullOptions(a, b)
		fakecluster.Must(t, Connect, o)
		o.Options, o.Update = Options{LocalServes: new(true)}, true
		o.ServiceType = new(records.NodePort)
		fakecluster.Must(t, Connect, o)
		want := records.GatewaySettings{MTU: new(1200), ServiceType: new(records.NodePort)}
		if p := b.Peering(t); p.Role != records.Client || !reflect.DeepEqual(p.Settings, want) || strings.HasPrefix(tunnelOf(p).Endpoints[0], "203.0.113.7") {
			t.Errorf("record %+v", p)
		}
		o.Options = Options{}
		checkUnchanged(t, o)

		b.ChangePeering(t, "a", func(p *records.Peering) { p.Role, p.Gateways[0].Tunnels[0].Endpoints = records.Server, nil })
		if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err == nil || !strings.Contains(hint.Of(err), "--server-side") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
		o.LocalServes = new(true)
		fakecluster.Must(t, Connect, o)
	})
}

// TestSettingsContradict: new settings must be compatible with existing ones.
func TestSettingsContradict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		o := connectOptions(a, b)
		o.Options = Options{}
		o.LoadBalancerIP = new(netip.MustParseAddr("203.0.113.7"))
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		if _, input := errors.AsType[*progress.InputError](err); !input {
			t.Errorf("error %v", err)
		}
	})
}

// TestSettingsOfTheServiceAreRecorded: a Service that is missing, or that another program has changed, becomes what the
// user has set.
func TestSettingsOfTheServiceAreRecorded(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, b *fakecluster.Cluster){
		"removed": func(t *testing.T, b *fakecluster.Cluster) { removeObject(t, b, "services", records.ServiceName("a")) },
		"changed": func(t *testing.T, b *fakecluster.Cluster) {
			s, err := kube.Find[*corev1.Service](t.Context(), b.Cluster, records.ServiceName("a"))
			require.NoError(t, err)
			s.Spec.Type = corev1.ServiceTypeClusterIP
			_, err = b.Fake.CoreV1().Services(b.Namespace).Update(t.Context(), s, metav1.UpdateOptions{})
			require.NoError(t, err)
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := connected(t)
			lose(t, b)
			o := connectOptions(a, b)
			o.Options = Options{}
			if name == "changed" {
				if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err == nil || !strings.Contains(err.Error(), "spec.type of Service gateway-a of b   ClusterIP -> NodePort") {
					t.Errorf("error %v", err)
				}
				o.Update = true
			}
			fakecluster.Must(t, Connect, o)
			s, err := kube.Find[*corev1.Service](t.Context(), b.Cluster, records.ServiceName("a"))
			if err != nil || s == nil || s.Spec.Type != corev1.ServiceTypeNodePort {
				t.Errorf("Service %+v, %v", s, err)
			}
		})
	}
}
