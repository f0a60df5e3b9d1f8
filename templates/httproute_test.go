package templates

import (
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// httpRoute has the fields of sigs.k8s.io/gateway-api/apis/v1 HTTPRoute that the manifest in docs uses.
type httpRoute struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name, Namespace string
	} `json:"metadata"`
	Spec struct {
		ParentRefs []struct {
			Name, Namespace string
		} `json:"parentRefs"`
		Hostnames []string `json:"hostnames"`
		Rules     []struct {
			Matches []struct {
				Path struct{ Type, Value string } `json:"path"`
			} `json:"matches"`
			BackendRefs []struct {
				Name string `json:"name"`
				Port int32  `json:"port"`
			} `json:"backendRefs"`
		} `json:"rules"`
	} `json:"spec"`
}

// TestHTTPRoute: the HTTPRoute in docs leads the requests of the Ingress to the same ports of the same Service.
func TestHTTPRoute(t *testing.T) {
	text, err := os.ReadFile("../docs/gateway-api/httproute.yaml")
	require.NoError(t, err)
	var route httpRoute
	require.NoError(t, yaml.UnmarshalStrict(text, &route))
	assert.Equal(t, "type", "gateway.networking.k8s.io/v1 HTTPRoute", route.APIVersion+" "+route.Kind)

	objects, err := gateway(func(v *GatewayValues) {
		v.Peering, v.Namespace, v.Gateways = "b", records.DefaultNamespace, 2
		v.Settings = records.GatewaySettings{Ingress: new("gw.example.com"), IngressClass: new("none")}
	})()
	require.NoError(t, err)
	var want, have []string
	ports := map[string]int32{}
	for _, o := range objects {
		service, is := o.(*corev1.Service)
		if is && service.Name == route.Metadata.Name && service.Namespace == route.Metadata.Namespace {
			for _, p := range service.Spec.Ports {
				ports[p.Name] = p.Port
			}
		}
	}
	for _, o := range objects {
		if ingress, is := o.(*networkingv1.Ingress); is {
			rule := ingress.Spec.Rules[0]
			for _, p := range rule.HTTP.Paths {
				want = append(want, fmt.Sprint(rule.Host, string(*p.PathType), p.Path, " ", p.Backend.Service.Name, ports[p.Backend.Service.Port.Name]))
			}
		}
	}
	for _, rule := range route.Spec.Rules {
		path, to := rule.Matches[0].Path, rule.BackendRefs[0]
		have = append(have, fmt.Sprint(route.Spec.Hostnames[0], path.Type, path.Value, " ", to.Name, to.Port))
	}
	assert.Equal(t, "routes", want, have)
}
