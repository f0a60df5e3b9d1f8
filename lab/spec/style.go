package spec

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Style is how a cluster's network plugin and kube-proxy treat packets. A field with its zero value takes the
// first of its values.
type Style struct {
	Masquerade   Masquerade   `json:"masquerade"`
	PodNetwork   PodNetwork   `json:"podNetwork"`
	PodAddresses PodAddresses `json:"podAddresses"`
	KubeProxy    KubeProxy    `json:"kubeProxy"`
}

// Masquerade is how packets that leave the pod network get a source of the node network.
type Masquerade string

// The ways to masquerade.
const (
	MasqueradeNft      Masquerade = "nft"      // the node, by nftables at priority 90, as kindnet
	MasqueradeIptables Masquerade = "iptables" // the node, by iptables (of nftables) at priority 100, as flannel
	// MasqueradeNone leaves it to the router, as VPC-native networks do: nodes do not, and the router knows where
	// each pod is.
	MasqueradeNone Masquerade = "none"
)

// PodNetwork is the network between the pods of two nodes.
type PodNetwork string

// The carriers of pods' packets.
const (
	Routes PodNetwork = "routes" // plain routes over the node network
	VXLAN  PodNetwork = "vxlan"  // the plugin's own tunnel on UDP 8472, as flannel: nodes have an address in it
)

// PodAddresses is the source of the pods' addresses.
type PodAddresses string

// The sources of pods' addresses.
const (
	PerNode PodAddresses = "nodes" // the node's podCIDR, on one bridge
	// Pool is one range for all nodes, outside all podCIDRs; each pod has a route of its own, as with Calico.
	Pool PodAddresses = "pool"
)

// KubeProxy is the mode in which Services are translated.
type KubeProxy string

// The modes of kube-proxy.
const (
	ProxyNftables KubeProxy = "nftables"
	ProxyIptables KubeProxy = "iptables"
	ProxyNone     KubeProxy = "none" // no kube-proxy: the network plugin translates Services
)

// All values of each field that make a style of the lab's own network, the default first.
var (
	masquerades  = []Masquerade{MasqueradeNft, MasqueradeIptables, MasqueradeNone}
	podNetworks  = []PodNetwork{Routes, VXLAN}
	podAddresses = []PodAddresses{PerNode, Pool}
	kubeProxies  = []KubeProxy{ProxyNftables, ProxyIptables}
)

// Styles returns every style there is.
func Styles() []Style {
	var all []Style
	for _, m := range masquerades {
		for _, n := range podNetworks {
			for _, a := range podAddresses {
				for _, p := range kubeProxies {
					all = append(all, Style{m, n, a, p})
				}
			}
		}
	}
	return all
}

// Pairwise returns few styles in which any two values of different fields meet.
func Pairwise() []Style {
	return []Style{
		{MasqueradeNone, Routes, PerNode, ProxyNftables},
		{MasqueradeIptables, VXLAN, Pool, ProxyNftables},
		{MasqueradeNft, Routes, Pool, ProxyIptables},
		{MasqueradeNone, VXLAN, Pool, ProxyIptables},
		{MasqueradeIptables, Routes, PerNode, ProxyIptables},
		{MasqueradeNft, VXLAN, PerNode, ProxyNftables},
	}
}

// String is the style in one word.
func (s Style) String() string {
	return fmt.Sprintf("%s-%s-%s-%s", s.Masquerade, s.PodNetwork, s.PodAddresses, s.KubeProxy)
}

func completeStyle(s Style) Style {
	fill(&s.Masquerade, masquerades)
	fill(&s.PodNetwork, podNetworks)
	fill(&s.PodAddresses, podAddresses)
	fill(&s.KubeProxy, kubeProxies)
	return s
}

// fill sets what is empty to the first of its values.
func fill[T ~string](field *T, values []T) {
	if *field == "" {
		*field = values[0]
	}
}

func validateStyle(s Style) error {
	return errors.Join(
		oneOf("masquerade", s.Masquerade, masquerades),
		oneOf("podNetwork", s.PodNetwork, podNetworks),
		oneOf("podAddresses", s.PodAddresses, podAddresses),
		oneOf("kubeProxy", s.KubeProxy, kubeProxies),
	)
}

func oneOf[T ~string](field string, value T, values []T) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("%s %q: want one of %v", field, value, values)
}

// tunnelOverhead is what VXLAN adds to a pod's packet, bytes: IP 20, UDP 8, VXLAN 8, Ethernet 14.
const tunnelOverhead = 50

// PodMTU is the size in bytes of the largest packet of a pod in the lab's own network.
func (c Cluster) PodMTU() int {
	if c.PodNetwork == VXLAN {
		return c.MTU - tunnelOverhead
	}
	return c.MTU
}

// poolShare is how many addresses of the pool a node has: as many as kubelet runs pods.
const poolShare = 110

// PoolAddresses are the addresses that the nth node, from 1, may give its pods where there is one pool: every
// MaxNodes-th one of the pod CIDR's upper half, so that no range belongs to a node.
func (c Cluster) PoolAddresses(n int) []netip.Addr {
	half := hosts(c.PodCIDR) / 2
	var all []netip.Addr
	for offset := half + n; offset < 2*half-1 && len(all) < poolShare; offset += c.MaxNodes() {
		all = append(all, nth(c.PodCIDR, offset))
	}
	return all
}

// Pods are the ranges and addresses that the nth node, from 1, may give its pods.
func (c Cluster) Pods(n int) []netip.Prefix {
	if c.PodAddresses != Pool {
		return []netip.Prefix{c.NodePodCIDR(n)}
	}
	var all []netip.Prefix
	for _, a := range c.PoolAddresses(n) {
		all = append(all, netip.PrefixFrom(a, a.BitLen()))
	}
	return all
}

// TunnelAddress is the nth node's own address, from 1, where a tunnel carries pods' packets: the first of its
// podCIDR, as flannel has it.
func (c Cluster) TunnelAddress(n int) netip.Addr { return c.NodePodCIDR(n).Addr() }
