package spec

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/lab/require"
)

var compareAddresses = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

func TestParseFillsDefaults(t *testing.T) {
	got, err := Parse([]byte("clusters: [{name: x}, {name: z, nodes: 3, podCIDR: 10.1.0.0/16, mtu: 1400, podNetwork: vxlan, kubeProxy: iptables}]"))
	require.NoError(t, err)
	usual := Style{MasqueradeNft, Routes, PerNode, ProxyNftables}
	services := netip.MustParsePrefix("10.96.0.0/16")
	want := Spec{Clusters: []Cluster{{
		Name: "x", Nodes: 2, IPFamilies: []Family{IPv4}, MTU: 1500, ServiceCIDR: services, Style: usual, NetworkPlugin: PluginLab, LoadBalancer: NoBalancer,
		PodCIDR: netip.MustParsePrefix("10.244.0.0/16"), NodeNetwork: netip.MustParsePrefix("172.31.1.0/24"),
	}, {
		Name: "z", Nodes: 3, IPFamilies: []Family{IPv4}, MTU: 1400, ServiceCIDR: services, Style: Style{MasqueradeNft, VXLAN, PerNode, ProxyIptables},
		NetworkPlugin: PluginLab, LoadBalancer: NoBalancer,
		PodCIDR: netip.MustParsePrefix("10.1.0.0/16"), NodeNetwork: netip.MustParsePrefix("172.31.2.0/24"),
	}}}
	if d := cmp.Diff(want, got, compareAddresses); d != "" {
		t.Error(d)
	}
}

func TestPluginsAreReadBack(t *testing.T) {
	want, err := Parse([]byte(`clusters:
- {name: a, networkPlugin: cilium, kubeProxy: none, ciliumValues: {bpf: {masquerade: true}}}
- {name: b, networkPlugin: flannel, flannelNetConf: {EnableNFTables: true}}
- {name: c, networkPlugin: cilium}
- {name: d}
- {name: e, networkPlugin: cilium-earlier, kubeProxy: none, ciliumValues: {devices: eth0}}`))
	require.NoError(t, err)
	if got := want.Clusters[2].Style; got != (Style{KubeProxy: ProxyNftables}) {
		t.Errorf("a plugin has the style %s", got)
	}
	if got := want.Plugins(); !slices.Equal(got, []NetworkPlugin{PluginFlannel, PluginCilium, PluginCiliumEarlier}) {
		t.Errorf("plugins %v", got)
	}
	text, err := want.Encode()
	require.NoError(t, err)
	got, err := Parse(text)
	require.NoError(t, err)
	if d := cmp.Diff(want, got, compareAddresses); d != "" {
		t.Error(d)
	}
}

func TestParseEmptyIsDefault(t *testing.T) {
	got, err := Parse(nil)
	require.NoError(t, err)
	if d := cmp.Diff(Default(), got, compareAddresses); d != "" {
		t.Error(d)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"unknown field":       {"clusters: [{name: a, pods: 10.0.0.0/8}]", `unknown field "pods"`},
		"nodes of none":       {"clusters: [{name: a, nodes: 1, controlPlaneOnly: true}]", "nodes 1: a control plane only has none"},
		"no name":             {"clusters: [{nodes: 1}]", "name: want"},
		"long name":           {"clusters: [{name: abcdefghijk}]", "name: want"},
		"twice":               {"clusters: [{name: a}, {name: a}]", "declared twice"},
		"not a range":         {"clusters: [{name: a, podCIDR: 10.0.0.0}]", "no '/'"},
		"IPv6":                {"clusters: [{name: a, podCIDR: 'fd00::/16'}]", "not an IPv4 range"},
		"host bits":           {"clusters: [{name: a, podCIDR: 10.1.2.3/16}]", "10.1.0.0/16 is meant?"},
		"pods too narrow":     {"clusters: [{name: a, podCIDR: 10.1.0.0/25}]", "want /8 to /24"},
		"services too wide":   {"clusters: [{name: a, serviceCIDR: 11.0.0.0/8}]", "want /12 to /27"},
		"pods over services":  {"clusters: [{name: a, podCIDR: 10.0.0.0/8}]", "overlaps podCIDR"},
		"shared node network": {"clusters: [{name: a}, {name: b, nodeNetwork: 172.31.0.0/16}]", "to which it is routed"},
		"nodes outside":       {"clusters: [{name: a, nodeNetwork: 192.0.2.0/24}]", "the network outside"},
		"small mtu":           {"clusters: [{name: a, mtu: 576}]", "want 1280 to 9000"},
		"unknown style":       {"clusters: [{name: a, podNetwork: smoke}]", `podNetwork "smoke": want one of [routes vxlan]`},
		"unknown plugin":      {"clusters: [{name: a, networkPlugin: smoke}]", `networkPlugin "smoke": want one of [lab flannel cilium flannel-earlier cilium-earlier]`},
		"style of a plugin":   {"clusters: [{name: a, networkPlugin: flannel, podNetwork: vxlan}]", "podNetwork vxlan: networkPlugin flannel decides"},
		"masquerade":          {"clusters: [{name: a, networkPlugin: cilium, masquerade: nft}]", "masquerade nft: networkPlugin cilium decides"},
		"pool of a plugin":    {"clusters: [{name: a, networkPlugin: cilium, podAddresses: pool}]", "podAddresses pool: networkPlugin cilium decides"},
		"no proxy at all":     {"clusters: [{name: a, networkPlugin: flannel, kubeProxy: none}]", "flannel does not translate Services"},
		"no proxy in the lab": {"clusters: [{name: a, kubeProxy: none}]", `kubeProxy "none": want one of`},
		"values of another":   {"clusters: [{name: a, ciliumValues: {l7Proxy: true}}]", "ciliumValues: networkPlugin is lab"},
		"conf of another":     {"clusters: [{name: a, networkPlugin: cilium, flannelNetConf: {x: y}}]", "flannelNetConf: networkPlugin is cilium"},
		"narrow pool":         {"clusters: [{name: a, nodes: 1, podCIDR: 10.1.0.0/22, podAddresses: pool}]", "/20 or wider"},
		"negative nodes":      {"clusters: [{name: a, nodes: -1}]", "want at least 1"},
		"nodes beyond pods":   {"clusters: [{name: a, nodes: 3, podCIDR: 10.1.0.0/23}]", "room for 2"},
		"unknown family":      {"clusters: [{name: a, ipFamilies: [IPv5]}]", "want IPv4, IPv6 or both"},
		"family twice":        {"clusters: [{name: a, ipFamilies: [IPv6, IPv6]}]", "want IPv4, IPv6 or both"},
		"nodes of IPv6 alone": {"clusters: [{name: a, ipFamilies: [IPv6]}]", "nodes need IPv4"},
		"IPv6 of a plugin":    {"clusters: [{name: a, networkPlugin: flannel, ipFamilies: [IPv6, IPv4]}]", "only the lab's own network"},
		"nodes beyond hosts":  {"clusters: [{name: a, nodes: 20, nodeNetwork: 192.168.0.0/27}]", "room for 19"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	c := Cluster{
		Name: "a", PodCIDR: netip.MustParsePrefix("10.244.0.0/16"),
		ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"), NodeNetwork: netip.MustParsePrefix("192.168.9.0/26"),
	}
	for _, tc := range []struct {
		what string
		got  any
		want string
	}{
		{"control plane", c.ControlPlaneAddress(), "192.168.9.10"},
		{"first node", c.NodeAddress(1), "192.168.9.11"},
		{"third node", c.NodeAddress(3), "192.168.9.13"},
		{"router", c.RouterAddress(), "192.168.9.62"},
		{"pods of the first node", c.NodePodCIDR(1), "10.244.0.0/24"},
		{"pods of the last node", c.NodePodCIDR(256), "10.244.255.0/24"},
		{"API service", c.APIService(), "10.96.0.1"},
		{"DNS service", c.DNSService(), "10.96.0.10"},
	} {
		if got := tc.got.(interface{ String() string }).String(); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.what, got, tc.want)
		}
	}
}

func TestLastNodeFitsBelowTheRouter(t *testing.T) {
	for _, network := range []string{"172.31.1.0/24", "192.168.9.0/26", "192.168.9.32/27"} {
		c := Cluster{PodCIDR: netip.MustParsePrefix("10.0.0.0/8"), NodeNetwork: netip.MustParsePrefix(network)}
		if last := c.NodeAddress(c.MaxNodes()); last.Next() != c.RouterAddress() {
			t.Errorf("%s: last node %s, router %s", network, last, c.RouterAddress())
		}
	}
}

func TestValidateName(t *testing.T) {
	for name, want := range map[string]bool{
		"demo": true, "a": true, "pull-12": true, "": false, "A": false, "1": false, "a/b": false, "a.b": false, "a-": false,
	} {
		if got := ValidateName(name) == nil; got != want {
			t.Errorf("%q valid: %v, want %v", name, got, want)
		}
	}
}

// TestFamilies: of addresses and ranges of both families, those of the primary one come first.
func TestFamilies(t *testing.T) {
	for text, want := range map[string][4]string{
		"[IPv4]":       {"172.31.1.11", "10.244.0.0/24", "10.96.0.0/16", "10.96.0.1"},
		"[IPv4, IPv6]": {"172.31.1.11 fd00:172::ac1f:10b", "10.244.0.0/24 fd00:244:0:1::/64", "10.96.0.0/16 fd00:96::/112", "10.96.0.1"},
		"[IPv6, IPv4]": {"fd00:172::ac1f:10b 172.31.1.11", "fd00:244:0:1::/64 10.244.0.0/24", "fd00:96::/112 10.96.0.0/16", "fd00:96::1"},
	} {
		s, err := Parse([]byte("clusters: [{name: a, ipFamilies: " + text + "}]"))
		require.NoError(t, err)
		c := s.Clusters[0]
		got := [4]string{
			strings.Trim(fmt.Sprint(c.NodeAddresses(1)), "[]"), strings.Trim(fmt.Sprint(c.NodePodCIDRs(1)), "[]"),
			strings.Trim(fmt.Sprint(c.ServiceCIDRs()), "[]"), c.APIService().String(),
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
