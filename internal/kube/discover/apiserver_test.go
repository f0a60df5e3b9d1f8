package discover

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"liqonet.io/liqonet/internal/kube"
)

func TestAPIServers(t *testing.T) {
	behind := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.12.9.9", "fd00::9"}}},
	}
	names := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if host != "api.example" {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("::ffff:10.12.9.10"), netip.MustParseAddr("10.12.9.9")}, nil
	}
	for host, want := range map[string][]string{
		"":                          {"10.12.9.9"},
		"https://10.12.9.11:6443":   {"10.12.9.9", "10.12.9.11"},
		"https://[fd00::1]:6443":    {"10.12.9.9"},
		"https://api.example:6443":  {"10.12.9.9", "10.12.9.10"},
		"https://gone.example:6443": {"10.12.9.9"},
	} {
		c := &kube.Cluster{Kube: fake.NewClientset(behind), Host: host, Lookup: names}
		got, err := APIServers(t.Context(), c)
		var texts []string
		for _, a := range got {
			texts = append(texts, a.String())
		}
		if err != nil || !slices.Equal(texts, want) {
			t.Errorf("%s: %v, %v, want %v", host, texts, err, want)
		}
	}
}
