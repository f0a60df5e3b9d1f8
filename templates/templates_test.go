package templates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

const image = "registry.example/liqonet:v1.2.3"

func base() ([]Object, error) {
	return Base(BaseValues{Namespace: "liqonet", Image: image, Policies: true})
}

func access(level Level) func() ([]Object, error) {
	return func() ([]Object, error) { return Access("liqonet", level) }
}

func gateway(change func(*GatewayValues)) func() ([]Object, error) {
	return func() ([]Object, error) {
		v := GatewayValues{
			Namespace: "liqonet", Peering: "milan", Image: image, Role: records.Server,
			Settings: records.GatewaySettings{ServiceType: new(records.NodePort)}, Gateways: 1, Tunnels: 1,
		}
		change(&v)
		return Gateways(v)
	}
}

// renderings are the contents of the golden files.
var renderings = map[string]func() ([]Object, error){
	"base": base,
	"base-elsewhere": func() ([]Object, error) {
		return Base(BaseValues{Namespace: "tools", Image: image})
	},
	"access-view":             access(View),
	"access-operate":          access(Operate),
	"access-administer":       access(Administer),
	"access-elsewhere":        func() ([]Object, error) { return Access("tools", View) },
	"gateway-client":          gateway(func(v *GatewayValues) { v.Role = records.Client }),
	"gateway-client-kernel":   gateway(func(v *GatewayValues) { v.Role, v.Settings.Implementation = records.Client, new(records.Kernel) }),
	"gateway-server-nodeport": gateway(func(v *GatewayValues) { v.Settings.NodePort = new(uint16(30840)) }),
	"gateway-server-loadbalancer": gateway(func(v *GatewayValues) {
		v.Settings = records.GatewaySettings{
			ServicePort: new(uint16(51841)), LoadBalancerIP: new(netip.MustParseAddr("192.0.2.7")),
			ServiceAnnotations: map[string]string{"example.com/class": "internal"},
		}
	}),
	"gateways-server": gateway(func(v *GatewayValues) {
		v.Gateways, v.Tunnels, v.Settings.NodePort, v.Keys = 2, 3, new(uint16(30840)), []string{"PUBLIC=.00", "OTHER=.00"}
	}),
	"gateways-client": gateway(func(v *GatewayValues) { v.Role, v.Gateways = records.Client, 2 }),
	"gateway-client-proxy": gateway(func(v *GatewayValues) {
		v.Role, v.Settings = records.Client, records.GatewaySettings{Proxy: new("http://proxy.example.com:3128"), ProxySecret: new("proxy")}
	}),
	"gateways-server-websocket": gateway(func(v *GatewayValues) {
		v.Gateways, v.Settings = 2, records.GatewaySettings{
			Transport: new(records.WebSocket), WebSocket: new(true), WebSocketPort: new(uint16(8443)), LoadBalancerIP: new(netip.MustParseAddr("192.0.2.7")),
			ServiceAnnotations: map[string]string{"example.com/class": "internal"}, Proxy: new("http://proxy.example.com:3128"), ProxySecret: new("proxy"),
		}
	}),
	"gateways-server-both": gateway(func(v *GatewayValues) {
		v.Settings = records.GatewaySettings{WebSocket: new(true), LoadBalancerIP: new(netip.MustParseAddr("192.0.2.7"))}
	}),
	"gateways-server-ingress": gateway(func(v *GatewayValues) {
		v.Gateways, v.Settings = 2, records.GatewaySettings{
			Ingress: new("gw.example.com"), IngressClass: new("traefik"), IngressAnnotations: map[string]string{"cert-manager.io/cluster-issuer": "letsencrypt"},
		}
	}),
	"verify":                   verification,
	"pathtest":                 pathTest,
	"gateway-server-clusterip": gateway(func(v *GatewayValues) { v.Settings.ServiceType = new(records.ClusterIP) }),
}

func TestGolden(t *testing.T) {
	for name, render := range renderings {
		t.Run(name, func(t *testing.T) {
			objects, err := render()
			require.NoError(t, err)
			golden.Check(t, name+".golden", string(text(t, objects)))
		})
	}
}

// TestGoldenDecodesStrictly: every golden file, decoded as strictly as by an API server, equals the rendered objects.
func TestGoldenDecodesStrictly(t *testing.T) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for name, render := range renderings {
		t.Run(name, func(t *testing.T) {
			want, err := render()
			require.NoError(t, err)
			golden, err := os.ReadFile(filepath.Join("testdata", name+".golden"))
			require.NoError(t, err)
			documents := strings.Split(string(golden), "---\n")
			if len(documents) != len(want) {
				t.Fatalf("%d documents, want %d", len(documents), len(want))
			}
			for i, document := range documents {
				got, _, err := decoder.Decode([]byte(document), nil, nil)
				if err != nil {
					t.Fatalf("document %d: %v", i, err)
				}
				assert.Equal(t, fmt.Sprint("document ", i), want[i], got)
			}
		})
	}
}

// TestRenderingIsStable: order and content of a rendering never vary, so that applying it again changes nothing.
func TestRenderingIsStable(t *testing.T) {
	for name, render := range renderings {
		first, err := render()
		require.NoError(t, err)
		for range 20 {
			again, err := render()
			require.NoError(t, err)
			if !bytes.Equal(text(t, first), text(t, again)) {
				t.Fatalf("%s differs from one rendering to the next", name)
			}
		}
	}
}

func TestEveryObjectHasLiqonetsLabel(t *testing.T) {
	for name, render := range renderings {
		objects, err := render()
		require.NoError(t, err)
		for _, o := range objects {
			// Roles of users do not belong to the installation.
			if o.GetLabels()[records.LabelComponent] == "" && !strings.HasPrefix(name, "access-") {
				t.Errorf("%s: %T %s has no label %s", name, o, o.GetName(), records.LabelComponent)
			}
			if kind := o.GetObjectKind().GroupVersionKind(); kind.Kind == "" || kind.Version == "" {
				t.Errorf("%s: %T %s does not tell its kind", name, o, o.GetName())
			}
		}
	}
}

// text encodes objects as YAML documents, without the empty status that typed objects always have.
func text(t *testing.T, objects []Object) []byte {
	t.Helper()
	var all bytes.Buffer
	for i, o := range objects {
		if i > 0 {
			all.WriteString("---\n")
		}
		data, err := json.Marshal(o)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(data, &fields))
		delete(fields, "status")
		document, err := yaml.Marshal(fields)
		require.NoError(t, err)
		all.Write(document)
	}
	return all.Bytes()
}
