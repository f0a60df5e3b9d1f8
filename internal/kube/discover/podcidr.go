package discover

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"liqonet.io/liqonet/internal/cidr"
)

// podCIDRs returns the ranges from which pods get their addresses. The sources are ordered by how directly they
// determine the addresses: the configuration of the CNI, then the flags of the components, last the ranges of the
// nodes. The first source that contains all running pods applies.
func (q *question) podCIDRs() (Ranges, error) {
	return q.ranges(rangeQuery{
		what: "pod CIDR", flag: "pod-cidr", given: q.overrides.PodCIDRs, stray: q.strayPod, effect: ": it will not be reached",
		unknown: "no CNI resource, component or node has it",
		sources: []func() Ranges{
			q.calicoPods, q.ciliumPods, q.flannelPods,
			func() Ranges {
				return q.configured("kubeadm ConfigMap", kubeadmConfig, "ClusterConfiguration", "networking", "podSubnet")
			},
			// The controller manager allocates the nodes' podCIDRs from its range.
			func() Ranges { return q.argument("--cluster-cidr", "kube-controller-manager", "kube-proxy") },
			func() Ranges {
				return q.configured("kube-proxy ConfigMap clusterCIDR", kubeProxyConfig, "config.conf", "clusterCIDR")
			},
			func() Ranges { return q.k3s("--cluster-cidr") },
			q.nodePods,
		},
	})
}

// strayPod returns a running pod whose address is outside the ranges; "" if there is none. It ignores pods in the host
// network and those on virtual nodes.
func (q *question) strayPod(prefixes []netip.Prefix) string {
	known := make(map[string]bool)
	for _, node := range q.nodes {
		known[node.Name] = true
	}
	for i := range q.inv.pods.Items {
		pod := &q.inv.pods.Items[i]
		if pod.Spec.HostNetwork || pod.DeletionTimestamp != nil || !known[pod.Spec.NodeName] {
			continue
		}
		for _, a := range PodAddresses(pod) {
			if !cidr.Contains(prefixes, a) {
				return fmt.Sprintf("pod %s/%s has address %s", pod.Namespace, pod.Name, a)
			}
		}
	}
	return ""
}

// PodAddresses returns the IPv4 addresses of a pod.
func PodAddresses(pod *corev1.Pod) []netip.Addr {
	texts := make([]string, len(pod.Status.PodIPs), len(pod.Status.PodIPs)+1)
	for i, ip := range pod.Status.PodIPs {
		texts[i] = ip.IP
	}
	return addresses(append(texts, pod.Status.PodIP)...)
}

// nodePods infers the range from the podCIDRs of the nodes.
func (q *question) nodePods() Ranges {
	var all []netip.Prefix
	for _, node := range q.nodes {
		all = append(all, node.PodCIDRs...)
	}
	return q.inferred("node podCIDRs", all)
}

// inferred estimates the cluster's range from those of its nodes, for which there is no better rule: the prefix that
// covers them all, widened to at most a /16 that does not overlap Services or node addresses. An estimate that is too
// narrow excludes nodes that join later. One that is too wide causes conflicts with unused ranges, and needless
// remapping. If the covering prefix itself overlaps Services or node addresses, the nodes' ranges are unrelated, and
// there is no result.
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
		q.note("no pod CIDR from %s (%v): %s, which covers them, overlaps Services or nodes", source, cidr.Merged(ranges), cover)
		return Ranges{}
	}
	guess := widened(cover, taken)
	if guess != cover {
		source += fmt.Sprintf(", widened to /%d", guess.Bits())
	}
	return Ranges{Prefixes: []netip.Prefix{guess}, Source: source}
}

// calicoPods returns the ranges of Calico's pools for workloads.
func (q *question) calicoPods() Ranges {
	if !q.cniMayBe("calico", "canal") {
		return Ranges{}
	}
	var names []string
	var prefixes []netip.Prefix
	for _, pool := range q.inv.calicoPools.Items {
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

// ciliumPods returns the ranges of the pools of Cilium's own address management. In its mode "kubernetes" Cilium uses
// the nodes' podCIDRs, in its cloud modes addresses of the cloud's network. Other sources have those.
func (q *question) ciliumPods() Ranges {
	config := q.inv.configMaps[ciliumConfig].Data
	if config == nil || !q.cniMayBe("cilium") {
		return Ranges{}
	}
	switch config["ipam"] {
	case "cluster-pool", "cluster-pool-v2beta":
		if r := q.parsed("cilium-config cluster-pool-ipv4-cidr", config["cluster-pool-ipv4-cidr"]); len(r.Prefixes) > 0 {
			return r
		}
		const source = "CiliumNode podCIDRs" // assigned by Cilium
		_, cidrs := fieldOf(q.inv.ciliumNodes, "spec", "ipam", "podCIDRs")
		return q.inferred(source, q.parse(source, cidrs...))
	case "multi-pool":
		names, cidrs := fieldOf(q.inv.ciliumPools, "spec", "ipv4", "cidrs")
		return q.parsed("CiliumPodIPPool "+strings.Join(names, ", "), cidrs...)
	}
	return Ranges{}
}

// fieldOf returns the names of custom resources, and all texts in a field of them.
func fieldOf(list unstructured.UnstructuredList, path ...string) (names, texts []string) {
	for _, o := range list.Items {
		some, _, _ := unstructured.NestedStringSlice(o.Object, path...)
		names, texts = append(names, o.GetName()), append(texts, some...)
	}
	return names, texts
}

// flannelPods returns the network to which flannel is restricted.
func (q *question) flannelPods() Ranges {
	if !q.cniMayBe("flannel", "canal") {
		return Ranges{}
	}
	for _, place := range []types.NamespacedName{flannelConfig, flannelSystemConfig} {
		if r := q.configured("kube-flannel-cfg net-conf.json", place, "net-conf.json", "Network"); len(r.Prefixes) > 0 {
			return r
		}
	}
	return Ranges{}
}
