package discover

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cni returns the name of the network plugin, determined by its DaemonSets; "" if none is known. Plugins that assign
// pod addresses come first: Calico may run beside one of them for policies only.
func (inv *inventory) cni() string {
	for _, known := range []struct{ daemonSet, name string }{
		{"aws-node", "aws-vpc"},
		{"azure-cns", "azure"},
		{"canal", "canal"},
		{"rke2-canal", "canal"},
		{"anetd", "cilium"}, // GKE Dataplane V2
		{"cilium", "cilium"},
		{"calico-node", "calico"},
		{"kube-flannel", "flannel"},
		{"kube-flannel-ds", "flannel"},
		{"kindnet", "kindnet"},
		{"antrea-agent", "antrea"},
		{"kube-router", "kube-router"},
		{"kube-ovn-cni", "kube-ovn"},
		{"ovnkube-node", "ovn-kubernetes"},
		{"weave-net", "weave"},
	} {
		if inv.daemonSet(known.daemonSet) >= 0 {
			return known.name
		}
	}
	return ""
}

// daemonSet returns the index of the DaemonSet with that name, -1 if it does not exist.
func (inv *inventory) daemonSet(name string) int {
	return slices.IndexFunc(inv.daemonSets.Items, func(d appsv1.DaemonSet) bool { return d.Name == name })
}

// cniMayBe reports whether the CNI is one of these, or unknown. The check is needed because a CNI's configuration may
// remain after the CNI was replaced.
func (q *question) cniMayBe(names ...string) bool {
	cni := q.inv.cni()
	return cni == "" || slices.Contains(names, cni)
}

// warnings returns the known incompatibilities with liqonet's packet path.
func (inv *inventory) warnings() []Warning {
	return slices.Concat(inv.ciliumWarnings(), inv.calicoWarnings(), inv.ovnWarnings(), inv.liqoWarnings())
}

// ciliumWarnings checks for settings by which packets bypass the node's netfilter, or its routing rules as well.
func (inv *inventory) ciliumWarnings() []Warning {
	config := inv.configMaps[ciliumConfig].Data
	if config == nil || inv.cni() != "" && inv.cni() != "cilium" {
		return nil
	}
	replaced := config["kube-proxy-replacement"] == "true" || config["kube-proxy-replacement"] == "strict"
	var all []Warning
	switch {
	case strings.HasPrefix(config["datapath-mode"], "netkit"):
		all = append(all, Warning{
			What:   "Cilium's netkit devices take packets of pods past the node's routing rules and nftables",
			Hint:   "set bpf.datapathMode=veth and bpf.hostLegacyRouting=true in Cilium's Helm values",
			Breaks: true,
		})
	case replaced && config["enable-host-legacy-routing"] != "true" && !iptablesMasquerade(config):
		all = append(all, Warning{
			What: "Cilium routes by eBPF: UDP in fragments does not reach the peer, and routes alone, not nftables, " +
				"keep packets of pods for it from leaving unencrypted",
			Hint: "set bpf.hostLegacyRouting=true in Cilium's Helm values if that is not enough",
		})
	}
	if replaced {
		all = append(all, Warning{
			What: "Cilium replaces kube-proxy: clients outside the cluster do not reach endpoints in the peer by a NodePort",
			Hint: "keep kube-proxy if you need such NodePorts",
		})
	}
	if config["enable-policy"] == "always" {
		all = append(all, Warning{
			What: "Cilium denies what no policy allows (policyEnforcementMode=always): gateways may reach neither nodes nor the API server",
			Hint: "allow the pods of liqonet's namespace by a NetworkPolicy first: see docs/network-plugins.md",
		})
	}
	return all
}

// iptablesMasquerade reports whether Cilium masquerades with iptables, for IPv4 or IPv6. It then does not route by
// eBPF: see InitKubeProxyReplacementOptions in its pkg/kpr/initializer. For absent settings, the agent's defaults
// apply.
func iptablesMasquerade(config map[string]string) bool {
	masquerades := func(enabled, masquerade, byDefault string) bool {
		return cmp.Or(config[enabled], byDefault) == "true" && cmp.Or(config[masquerade], "true") == "true"
	}
	return config["enable-bpf-masquerade"] != "true" &&
		(masquerades("enable-ipv4", "enable-ipv4-masquerade", "true") || masquerades("enable-ipv6", "enable-ipv6-masquerade", "true"))
}

func (inv *inventory) calicoWarnings() []Warning {
	i := inv.daemonSet("calico-node")
	if i < 0 {
		return nil
	}
	var all []Warning
	for _, container := range inv.daemonSets.Items[i].Spec.Template.Spec.Containers {
		if container.Name != "calico-node" {
			continue
		}
		method, bgp := "first-found", true
		for _, env := range container.Env {
			switch env.Name {
			case "IP_AUTODETECTION_METHOD":
				method = env.Value
			case "CALICO_NETWORKING_BACKEND":
				bgp = env.Value != "none"
			}
		}
		if bgp && (method == "" || strings.HasPrefix(method, "first-found")) {
			all = append(all, Warning{
				What: "Calico takes the first address that it finds as the node's: it may take one of liqonet's interfaces",
				Hint: "set its address detection to kubernetes-internal-ip, or to skip-interface=lqn-.*",
			})
		}
	}
	for _, felix := range inv.calicoFelix.Items {
		if on, _, _ := unstructured.NestedBool(felix.Object, "spec", "bpfEnabled"); on {
			all = append(all, Warning{
				What: "Calico routes by eBPF (FelixConfiguration " + felix.GetName() + "): packets may pass by the node's routing rules",
				Hint: "use Calico's standard Linux data plane (bpfEnabled: false)",
			})
		}
	}
	return all
}

// ovnWarnings warns if OVN-Kubernetes forwards pod packets with Open vSwitch, bypassing the node's kernel.
func (inv *inventory) ovnWarnings() []Warning {
	if inv.cni() != "ovn-kubernetes" || len(inv.openshiftNetworks.Items) == 0 {
		return nil
	}
	path := []string{"spec", "defaultNetwork", "ovnKubernetesConfig", "gatewayConfig", "routingViaHost"}
	if viaHost, _, _ := unstructured.NestedBool(inv.openshiftNetworks.Items[0].Object, path...); viaHost {
		return nil
	}
	return []Warning{{
		What:   "OVN-Kubernetes takes packets that leave the cluster past the node's routing rules and nftables",
		Hint:   "set " + strings.Join(path[1:], ".") + " to true in networks.operator.openshift.io/cluster",
		Breaks: true,
	}}
}

// liqoWarnings warns if Liqo's network fabric runs in the cluster, the DaemonSet with which Liqo configures nodes: its
// Geneve interfaces use liqonet's overlay port, and its default internal and external CIDRs are the same as liqonet's.
func (inv *inventory) liqoWarnings() []Warning {
	if inv.daemonSet("liqo-fabric") < 0 {
		return nil
	}
	return []Warning{{
		What:   "Liqo's network fabric runs here: it uses the same UDP port (6091) and the same internal and external CIDRs",
		Hint:   "remove Liqo's networking first, or install Liqo with its networking module disabled",
		Breaks: true,
	}}
}
