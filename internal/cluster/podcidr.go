package cluster

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/cidr"
)

// podCIDRs returns the ranges from which pods get their addresses. Sources are asked in the order of how close
// they are to the address given: what the CNI itself is configured with, then what the components were
// started with, last the ranges of the nodes. The first counts in which all running pods lie.
func (q *question) podCIDRs() (Ranges, error) {
	const what, flag = "pod CIDR", "pod-cidr"
	if given := q.overrides.PodCIDRs; given != nil {
		r := Ranges{Prefixes: cidr.Merged(given), Source: "--" + q.overrides.FlagPrefix + flag}
		if stray := q.strayPod(r.Prefixes); stray != "" {
			q.note("%s, outside %v: it will not be reached", stray, r.Prefixes)
		}
		return r, nil
	}
	var contradicted []string
	for _, ask := range []func() Ranges{
		q.calicoPods, q.ciliumPods, q.flannelPods, q.kubeadmPods, q.componentPods, q.kubeProxyPods, q.k3sPods, q.nodePods,
	} {
		r := ask()
		if len(r.Prefixes) == 0 {
			continue
		}
		stray := q.strayPod(r.Prefixes)
		if stray == "" {
			return r, nil
		}
		contradicted = append(contradicted, fmt.Sprintf("%v (%s), but %s", r.Prefixes, r.Source, stray))
	}
	if len(contradicted) > 0 {
		return Ranges{}, q.missing(what, flag, "%s", strings.Join(contradicted, "; "))
	}
	return Ranges{}, q.missing(what, flag, "no CNI resource, component or node tells it")
}

// strayPod names a running pod whose address is outside the ranges; "" if there is none. Pods that share a
// node's network do not count, nor those of virtual nodes.
func (q *question) strayPod(prefixes []netip.Prefix) string {
	known := make(map[string]bool)
	for _, node := range q.nodes {
		known[node.Name] = true
	}
	for i := range q.inv.pods {
		pod := &q.inv.pods[i]
		if pod.Spec.HostNetwork || pod.DeletionTimestamp != nil || !known[pod.Spec.NodeName] {
			continue
		}
		for _, a := range podAddresses(pod) {
			if !cidr.Contains(prefixes, a) {
				return fmt.Sprintf("pod %s/%s has address %s", pod.Namespace, pod.Name, a)
			}
		}
	}
	return ""
}

// podAddresses returns the IPv4 addresses of a pod.
func podAddresses(pod *corev1.Pod) []netip.Addr {
	texts := make([]string, len(pod.Status.PodIPs), len(pod.Status.PodIPs)+1)
	for i, ip := range pod.Status.PodIPs {
		texts[i] = ip.IP
	}
	return addresses(append(texts, pod.Status.PodIP))
}

// nodePods infers the range from those that the API gives its nodes.
func (q *question) nodePods() Ranges {
	var all []netip.Prefix
	for _, node := range q.nodes {
		all = append(all, node.PodCIDRs...)
	}
	return q.inferred("node podCIDRs", all)
}

// inferred guesses the cluster's range from those of its nodes, for which there is no better rule than this:
// the prefix that covers them all, widened to a /16 as far as it stays clear of Services and node addresses.
// Too narrow a guess would leave out nodes that join later; too wide a one makes conflicts that are none, so
// that a range nobody uses is translated. If even the covering prefix meets Services or node addresses the
// nodes' ranges have nothing in common, and nothing is guessed.
func (q *question) inferred(source string, ranges []netip.Prefix) Ranges {
	if len(ranges) == 0 {
		return Ranges{}
	}
	taken := slices.Clone(q.services.Prefixes)
	for _, node := range q.nodes {
		taken = append(taken, cidr.Singles(node.Internal)...)
	}
	cover := covering(ranges)
	if cidr.Overlaps(cover, taken) {
		q.note("%s (%v) do not tell the pod CIDR: what covers them, %s, covers Services or nodes too", source, cidr.Merged(ranges), cover)
		return Ranges{}
	}
	guess := widened(cover, taken)
	if guess != cover {
		source += fmt.Sprintf(", widened to /%d", guess.Bits())
	}
	return Ranges{Prefixes: []netip.Prefix{guess}, Source: source}
}

// calicoPods reads Calico's pools for workloads.
func (q *question) calicoPods() Ranges {
	if !q.mayBe("calico", "canal") {
		return Ranges{}
	}
	var names []string
	var prefixes []netip.Prefix
	for _, pool := range q.inv.calicoPools {
		uses, _, _ := unstructured.NestedStringSlice(pool.Object, "spec", "allowedUses")
		disabled, _, _ := unstructured.NestedBool(pool.Object, "spec", "disabled")
		if disabled || len(uses) > 0 && !slices.Contains(uses, "Workload") {
			continue
		}
		cidr, _, _ := unstructured.NestedString(pool.Object, "spec", "cidr")
		if some := q.parse("Calico IPPool "+pool.GetName(), cidr); len(some) > 0 {
			names, prefixes = append(names, pool.GetName()), append(prefixes, some...)
		}
	}
	return Ranges{Prefixes: cidr.Merged(prefixes), Source: "Calico IPPool " + strings.Join(names, ", ")}
}

// ciliumPods reads the pools of Cilium's own address management. In its mode "kubernetes" Cilium takes the
// nodes' podCIDRs, in its cloud modes addresses of the cloud's network: those are for other sources.
func (q *question) ciliumPods() Ranges {
	config := q.inv.configMaps[ciliumConfig]
	if config == nil || !q.mayBe("cilium") {
		return Ranges{}
	}
	switch config["ipam"] {
	case "cluster-pool", "cluster-pool-v2beta":
		const source = "cilium-config cluster-pool-ipv4-cidr"
		if p := q.parse(source, config["cluster-pool-ipv4-cidr"]); len(p) > 0 {
			return Ranges{Prefixes: p, Source: source}
		}
		return q.ciliumNodes()
	case "multi-pool":
		var names, cidrs []string
		for _, pool := range q.inv.ciliumPools {
			some, _, _ := unstructured.NestedStringSlice(pool.Object, "spec", "ipv4", "cidrs")
			names, cidrs = append(names, pool.GetName()), append(cidrs, some...)
		}
		source := "CiliumPodIPPool " + strings.Join(names, ", ")
		return Ranges{Prefixes: q.parse(source, cidrs...), Source: source}
	}
	return Ranges{}
}

// ciliumNodes returns the ranges that Cilium gave its nodes.
func (q *question) ciliumNodes() Ranges {
	var cidrs []string
	for _, node := range q.inv.ciliumNodes {
		some, _, _ := unstructured.NestedStringSlice(node.Object, "spec", "ipam", "podCIDRs")
		cidrs = append(cidrs, some...)
	}
	const source = "CiliumNode podCIDRs"
	return q.inferred(source, q.parse(source, cidrs...))
}

// flannelPods reads the network that flannel refuses to leave.
func (q *question) flannelPods() Ranges {
	if !q.mayBe("flannel", "canal") {
		return Ranges{}
	}
	for _, place := range []configMap{flannelConfig, flannelSystemConfig} {
		text, found := q.inv.configMaps[place]["net-conf.json"]
		if !found {
			continue
		}
		const source = "kube-flannel-cfg net-conf.json"
		var config struct{ Network string }
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			q.note("%s: %v", source, err)
			continue
		}
		return Ranges{Prefixes: q.parse(source, config.Network), Source: source}
	}
	return Ranges{}
}

func (q *question) kubeadmPods() Ranges {
	return q.kubeadm(func(n kubeadmNetworking) string { return n.PodSubnet })
}

// componentPods reads what the controller manager cuts the nodes' podCIDRs from, else what kube-proxy was told.
func (q *question) componentPods() Ranges {
	for _, component := range []string{"kube-controller-manager", "kube-proxy"} {
		if r := q.argument(component, "--cluster-cidr"); len(r.Prefixes) > 0 {
			return r
		}
	}
	return Ranges{}
}

func (q *question) kubeProxyPods() Ranges {
	text, found := q.inv.configMaps[kubeProxyConfig]["config.conf"]
	if !found {
		return Ranges{}
	}
	const source = "kube-proxy ConfigMap clusterCIDR"
	var config struct {
		ClusterCIDR string `json:"clusterCIDR"`
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		q.note("%s: %v", source, err)
		return Ranges{}
	}
	return Ranges{Prefixes: q.parse(source, config.ClusterCIDR), Source: source}
}

func (q *question) k3sPods() Ranges { return q.k3s("--cluster-cidr") }
