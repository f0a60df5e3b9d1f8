package translate_test

import (
	"os"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam/translate"
)

func slice(t *testing.T) *discoveryv1.EndpointSlice {
	t.Helper()
	text, err := os.ReadFile("testdata/slice.yaml")
	require.NoError(t, err)
	s := &discoveryv1.EndpointSlice{}
	require.NoError(t, yaml.UnmarshalStrict(text, s))
	return s
}

// TestEndpointSlice compares the translated slice with a golden file, and verifies that the input is not modified.
func TestEndpointSlice(t *testing.T) {
	in := slice(t)
	out, err := translate.EndpointSlice(in, newTranslator(t, config()).Export)
	require.NoError(t, err)
	assert.Equal(t, "the slice that was given has changed", slice(t), in)
	got, err := yaml.Marshal(out)
	require.NoError(t, err)
	golden.Check(t, "slice-for-b.golden", string(got))
}

func TestEndpointSliceRefuses(t *testing.T) {
	export := newTranslator(t, config()).Export
	for name, c := range map[string]struct {
		spoil func(*discoveryv1.EndpointSlice)
		want  string
	}{
		"IPv6":              {func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeIPv6 }, "only IPv4"},
		"no Service":        {func(s *discoveryv1.EndpointSlice) { delete(s.Labels, discoveryv1.LabelServiceName) }, "no Service"},
		"a node's own":      {func(s *discoveryv1.EndpointSlice) { s.Endpoints[1].Addresses[0] = "172.31.1.11" }, `Pod "web-1": translate 172.31.1.11`},
		"no address at all": {func(s *discoveryv1.EndpointSlice) { s.Endpoints[1].Addresses[0] = "web" }, "web"},
		"of another peering": {func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0] = discoveryv1.Endpoint{Addresses: []string{"10.73.0.1"}}
		}, "endpoint 0: translate 10.73.0.1"},
	} {
		s := slice(t)
		c.spoil(s)
		if out, err := translate.EndpointSlice(s, export); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "shop/web-7xk2p") {
			t.Errorf("%s: %+v, error %v", name, out, err)
		}
	}
}
