// Package spec is the declaration of a lab: its clusters, their nodes and their address ranges. It parses,
// completes and validates; it starts nothing.
package spec

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"

	"sigs.k8s.io/yaml"
)

// Spec declares a lab. The zero value, completed, is the default: two clusters of two nodes with the same pod
// and service CIDRs.
type Spec struct {
	Clusters []Cluster `json:"clusters"`
}

// Cluster declares one Kubernetes cluster. A field with its zero value takes the default.
type Cluster struct {
	Name        string       `json:"name"`
	Nodes       int          `json:"nodes"`       // default 2
	PodCIDR     netip.Prefix `json:"podCIDR"`     // default 10.244.0.0/16; every node gets a /24 of it
	ServiceCIDR netip.Prefix `json:"serviceCIDR"` // default 10.96.0.0/16
	NodeNetwork netip.Prefix `json:"nodeNetwork"` // default 172.31.N.0/24 for the Nth cluster
	IPFamilies  []Family     `json:"ipFamilies"`  // default IPv4 alone; the first is the primary one
	MTU         int          `json:"mtu"`         // bytes, of the node network; default 1500
	Style                    // default nft, routes, nodes, nftables

	// NetworkPlugin gives pods their network; default PluginLab. Of Style, a real plugin leaves KubeProxy.
	NetworkPlugin NetworkPlugin `json:"networkPlugin"`
	// FlannelNetConf is merged into flannel's net-conf.json.
	FlannelNetConf map[string]any `json:"flannelNetConf,omitempty"`
	// CiliumValues are values of Cilium's Helm chart, above those that the lab needs.
	CiliumValues map[string]any `json:"ciliumValues,omitempty"`

	// LoadBalancer serves Services of type LoadBalancer; default NoBalancer.
	LoadBalancer LoadBalancer `json:"loadBalancer"`

	// LimitCriticalPods admits pods of system-critical priorities only to namespaces with a ResourceQuota for them.
	LimitCriticalPods bool `json:"limitCriticalPods,omitempty"`

	// ControlPlaneOnly leaves the cluster without nodes.
	ControlPlaneOnly bool `json:"controlPlaneOnly,omitempty"`
}

// Limits and defaults.
const (
	nodePodBits  = 24 // length of a node's share of the pod CIDR
	defaultNodes = 2
	defaultMTU   = 1500
	maxPoolBits  = 20   // of a pool for all nodes: some hundred addresses a node
	minMTU       = 1280 // what IPv6 asks for; a smaller link is of no use to a tunnel either
	maxMTU       = 9000
	maxClusters  = 250 // the default node network has the cluster's number as its third octet
)

var (
	defaultPodCIDR     = netip.MustParsePrefix("10.244.0.0/16")
	defaultServiceCIDR = netip.MustParsePrefix("10.96.0.0/16")

	// clusterName leaves room for "br-NAME" and "NAME-123" in the 15 bytes of an interface's name.
	clusterName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,8}[a-z0-9])?$`)
	labName     = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`)
)

// ValidateName reports whether a lab can bear the name.
func ValidateName(name string) error {
	if !labName.MatchString(name) {
		return fmt.Errorf("lab name %q: want up to 40 lower-case letters, digits and dashes, a letter first", name)
	}
	return nil
}

// Default returns the spec of clusters "a" and "b" with two nodes each.
func Default() Spec {
	return Spec{Clusters: []Cluster{{Name: "a"}, {Name: "b"}}}.Complete()
}

// Read reads, completes and validates the YAML document in file.
func Read(file string) (Spec, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Spec{}, err
	}
	s, err := Parse(text)
	if err != nil {
		return Spec{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// Parse reads, completes and validates a YAML document. Unknown fields are errors.
func Parse(text []byte) (Spec, error) {
	var s Spec
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		return Spec{}, err
	}
	s = s.Complete()
	return s, s.Validate()
}

// Encode returns the spec as the YAML document that Parse reads.
func (s Spec) Encode() ([]byte, error) { return yaml.Marshal(s) }

// Complete returns the spec with defaults in place of zero values.
func (s Spec) Complete() Spec {
	if len(s.Clusters) == 0 {
		return Default()
	}
	out := Spec{Clusters: make([]Cluster, len(s.Clusters))}
	for i, c := range s.Clusters {
		if c.Nodes == 0 && !c.ControlPlaneOnly {
			c.Nodes = defaultNodes
		}
		if c.PodCIDR == (netip.Prefix{}) {
			c.PodCIDR = defaultPodCIDR
		}
		if c.ServiceCIDR == (netip.Prefix{}) {
			c.ServiceCIDR = defaultServiceCIDR
		}
		if c.NodeNetwork == (netip.Prefix{}) {
			c.NodeNetwork = netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, byte(i + 1), 0}), 24)
		}
		if c.MTU == 0 {
			c.MTU = defaultMTU
		}
		if len(c.IPFamilies) == 0 {
			c.IPFamilies = []Family{IPv4}
		}
		c.LoadBalancer = cmp.Or(c.LoadBalancer, NoBalancer)
		completePlugin(&c)
		out.Clusters[i] = c
	}
	return out
}

// Validate reports everything that is wrong with a completed spec.
func (s Spec) Validate() error {
	var errs []error
	if len(s.Clusters) > maxClusters {
		errs = append(errs, fmt.Errorf("%d clusters: at most %d", len(s.Clusters), maxClusters))
	}
	for i, c := range s.Clusters {
		for _, err := range c.problems() {
			errs = append(errs, fmt.Errorf("cluster %q: %w", c.Name, err))
		}
		if c.NodeNetwork.Overlaps(OutsideNetwork) {
			errs = append(errs, fmt.Errorf("cluster %q: node network %s overlaps %s, the network outside", c.Name, c.NodeNetwork, OutsideNetwork))
		}
		for _, other := range s.Clusters[:i] {
			if c.Name == other.Name {
				errs = append(errs, fmt.Errorf("cluster %q: declared twice", c.Name))
			}
			if c.NodeNetwork.Overlaps(other.NodeNetwork) {
				errs = append(errs, fmt.Errorf("cluster %q: node network %s overlaps %s of cluster %q, to which it is routed",
					c.Name, c.NodeNetwork, other.NodeNetwork, other.Name))
			}
		}
	}
	return errors.Join(errs...)
}

// problems lists what is wrong with one cluster by itself.
func (c Cluster) problems() []error {
	var errs []error
	if !clusterName.MatchString(c.Name) {
		errs = append(errs, errors.New("name: want up to 10 lower-case letters, digits and dashes, a letter first"))
	}
	if c.MTU < minMTU || c.MTU > maxMTU {
		errs = append(errs, fmt.Errorf("mtu %d: want %d to %d", c.MTU, minMTU, maxMTU))
	}
	errs = append(errs, c.pluginProblems()...)
	errs = append(errs, c.familyProblems()...)
	errs = append(errs, c.balancerProblems()...)
	wrong := c.rangeProblems()
	if len(wrong) > 0 {
		return append(errs, wrong...)
	}
	return append(errs, c.nodeProblems()...)
}

// rangeProblems lists what is wrong with the cluster's ranges.
func (c Cluster) rangeProblems() []error {
	ranges := []struct {
		field             string
		prefix            netip.Prefix
		shortest, longest int
	}{
		{"podCIDR", c.PodCIDR, 8, nodePodBits},
		{"serviceCIDR", c.ServiceCIDR, 12, 27}, // the API server refuses more than 20 host bits; .10 is for DNS
		{"nodeNetwork", c.NodeNetwork, 8, 27},  // .10 is the control plane, .11 the first node
	}
	var errs []error
	for i, r := range ranges {
		if err := validRange(r.prefix, r.shortest, r.longest); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", r.field, r.prefix, err))
			continue
		}
		for _, other := range ranges[:i] {
			if r.prefix.Overlaps(other.prefix) {
				errs = append(errs, fmt.Errorf("%s %s: overlaps %s %s", r.field, r.prefix, other.field, other.prefix))
			}
		}
	}
	return errs
}

// nodeProblems lists what is wrong with the number of nodes, in ranges that are sound.
func (c Cluster) nodeProblems() []error {
	var errs []error
	if c.ControlPlaneOnly && c.Nodes != 0 {
		errs = append(errs, fmt.Errorf("nodes %d: a control plane only has none", c.Nodes))
	}
	if c.Nodes < 1 && !c.ControlPlaneOnly {
		errs = append(errs, fmt.Errorf("nodes %d: want at least 1", c.Nodes))
	}
	if c.Nodes > c.MaxNodes() {
		errs = append(errs, fmt.Errorf("nodes %d: the ranges have room for %d", c.Nodes, c.MaxNodes()))
	}
	if c.PodAddresses == Pool && c.PodCIDR.Bits() > maxPoolBits {
		errs = append(errs, fmt.Errorf("podCIDR %s: a pool needs a /%d or wider", c.PodCIDR, maxPoolBits))
	}
	return errs
}

func validRange(p netip.Prefix, shortest, longest int) error {
	switch {
	case !p.IsValid() || !p.Addr().Is4():
		return errors.New("not an IPv4 range")
	case p != p.Masked():
		return fmt.Errorf("host bits are set; %s is meant?", p.Masked())
	case p.Bits() < shortest || p.Bits() > longest:
		return fmt.Errorf("length: want /%d to /%d", shortest, longest)
	}
	return nil
}
