package discover

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestCiliumPolicies checks the warning for a Cilium that denies gateways all traffic by default.
func TestCiliumPolicies(t *testing.T) {
	for mode, want := range map[string]int{"": 0, "default": 0, "never": 0, "always": 1} {
		inv := inventory{configMaps: map[types.NamespacedName]*corev1.ConfigMap{ciliumConfig: {Data: map[string]string{"enable-policy": mode}}}}
		if got := inv.ciliumWarnings(); len(got) != want {
			t.Errorf("enable-policy %q: %+v, want %d warnings", mode, got, want)
		}
	}
}

// TestCiliumRouting checks in which configurations Cilium routes by eBPF, according to its agent's code (release 1.20).
func TestCiliumRouting(t *testing.T) {
	const noIPv6 = "enable-ipv6=false "
	for config, want := range map[string]bool{
		"kube-proxy-replacement=true enable-bpf-masquerade=true":                                                       true,
		"kube-proxy-replacement=strict enable-bpf-masquerade=true":                                                     true,
		"kube-proxy-replacement=true enable-bpf-masquerade=true enable-host-legacy-routing=false":                      true,
		"kube-proxy-replacement=true enable-bpf-masquerade=true enable-host-legacy-routing=true":                       false,
		"kube-proxy-replacement=false enable-bpf-masquerade=true":                                                      false,
		"enable-bpf-masquerade=true":                                                                                   false,
		"kube-proxy-replacement=true":                                                                                  false,
		noIPv6 + "kube-proxy-replacement=true":                                                                         false,
		noIPv6 + "kube-proxy-replacement=true enable-ipv4-masquerade=false":                                            true,
		"kube-proxy-replacement=true enable-ipv4-masquerade=false":                                                     false,
		"kube-proxy-replacement=true enable-ipv4-masquerade=false enable-ipv6-masquerade=false":                        true,
		"kube-proxy-replacement=true enable-ipv4-masquerade=true enable-ipv6-masquerade=false":                         false,
		"kube-proxy-replacement=true enable-ipv4-masquerade=false enable-ipv6=true enable-ipv6-masquerade=true":        false,
		noIPv6 + "kube-proxy-replacement=false enable-ipv4-masquerade=false":                                           false,
		noIPv6 + "kube-proxy-replacement=true enable-ipv4-masquerade=false enable-host-legacy-routing=true":            false,
		noIPv6 + "kube-proxy-replacement=true enable-ipv4-masquerade=false bpf-lb-sock-hostns-only=true":               true,
		"kube-proxy-replacement=true enable-bpf-masquerade=true enable-ipv4-masquerade=true enable-ipv6-masquerade=no": true,
	} {
		data := map[string]string{}
		for setting := range strings.FieldsSeq(config) {
			name, value, _ := strings.Cut(setting, "=")
			data[name] = value
		}
		inv := inventory{configMaps: map[types.NamespacedName]*corev1.ConfigMap{ciliumConfig: {Data: data}}}
		var routes, nodePorts bool
		for _, w := range inv.ciliumWarnings() {
			routes = routes || strings.HasPrefix(w.What, "Cilium routes by eBPF")
			nodePorts = nodePorts || strings.HasPrefix(w.What, "Cilium replaces kube-proxy")
			if w.Breaks {
				t.Errorf("%s: refused: %s", config, w.What)
			}
		}
		if replaced := strings.Contains(config, "replacement=true") || strings.Contains(config, "strict"); routes != want || nodePorts != replaced {
			t.Errorf("%s: eBPF routing %v, want %v; NodePorts limited %v, want %v", config, routes, want, nodePorts, replaced)
		}
	}
}
