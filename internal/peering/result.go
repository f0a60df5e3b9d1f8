package peering

import (
	"net/netip"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// InitResult is what Init did.
type InitResult struct {
	Cluster ClusterInfo `json:"cluster"`
	// Unverified are the Ready nodes whose helpers have not reported in time.
	Unverified []UnverifiedNode     `json:"unverifiedNodes,omitempty"`
	Stages     []progress.StageTime `json:"stages"`
	Objects    []kube.Change        `json:"objects,omitempty"` // those that were created or changed
	Changed    bool                 `json:"changed"`
}

// UnverifiedNode is a Ready node that was not seen to take part.
type UnverifiedNode struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// ClusterInfo is a cluster as liqonet sees it.
type ClusterInfo struct {
	Context      string              `json:"context"`
	Name         string              `json:"name"`
	ClusterID    string              `json:"clusterID"`
	Namespace    string              `json:"namespace"`
	PodCIDRs     []netip.Prefix      `json:"podCIDRs"`
	ServiceCIDRs []netip.Prefix      `json:"serviceCIDRs"`
	NodeNetworks []netip.Prefix      `json:"nodeNetworks,omitempty"`
	ExternalCIDR netip.Prefix        `json:"externalCIDR"`
	InternalCIDR netip.Prefix        `json:"internalCIDR"`
	CNI          string              `json:"cni,omitempty"`
	Overlay      records.OverlayKind `json:"overlay"`
	MTU          int                 `json:"mtu"` // bytes, of the narrowest link
	Nodes        int                 `json:"nodes"`
}

// Connection is what Connect reached.
type Connection struct {
	Local   SideResult           `json:"local"`
	Remote  SideResult           `json:"remote"`
	MTU     int                  `json:"mtu"`  // bytes, of packets between pods of the two
	Hops    []Hop                `json:"hops"` // those that decide it
	Stages  []progress.StageTime `json:"stages"`
	Took    time.Duration        `json:"tookNanoseconds"`
	Changed bool                 `json:"changed"`           // in either cluster
	Objects []kube.Change        `json:"objects,omitempty"` // those that were created or changed
}

// SideResult is one cluster's side of a connection.
type SideResult struct {
	Cluster ClusterInfo `json:"cluster"`
	// Peering is its name in this cluster, which is the name of the other one.
	Peering   string               `json:"peering"`
	Role      records.Role         `json:"role"`
	Mappings  []status.MappedRange `json:"mappings"` // of the other cluster's ranges
	Endpoints []string             `json:"endpoints,omitempty"`
	Gateway   netip.Addr           `json:"gatewayAddress"` // internal, of the first
	MTU       int                  `json:"mtu"`            // bytes, of packets between pods of the two
	Proof     Proof                `json:"proof"`          // by the first gateway
	// OtherGateways are those after the first.
	OtherGateways []GatewayResult `json:"otherGateways,omitempty"`
	// Unverified are the Ready nodes whose packets did not cross, by all gateways, in time.
	Unverified []UnverifiedNode `json:"unverifiedNodes,omitempty"`
}

// GatewayResult is one of several gateways of a side.
type GatewayResult struct {
	Address netip.Addr `json:"gatewayAddress"` // internal
	Proof   Proof      `json:"proof"`
}

// Proof is what was seen to work from one side: the handshake, echoes between the gateways, and for each node
// an answer of a node of the peer to a packet of full size.
type Proof struct {
	Time           time.Time              `json:"time"`
	Endpoint       netip.AddrPort         `json:"endpoint,omitzero"`
	LastHandshake  time.Time              `json:"lastHandshake"`
	RTT            time.Duration          `json:"rttNanoseconds"` // between the gateways
	Loss           float64                `json:"loss"`
	Implementation records.Implementation `json:"implementation"`
	Overlay        records.OverlayKind    `json:"overlay"`
	Nodes          []NodeProof            `json:"nodes"`
}

// NodeProof is one node's part of a Proof.
type NodeProof struct {
	Name string        `json:"name"`
	RTT  time.Duration `json:"rttNanoseconds"` // to a node of the peer and back
}

// result describes the end of a connection that was proven.
func (e *end) result() SideResult {
	p := e.written
	r := SideResult{
		Cluster: e.info(), Peering: e.peering, Role: e.role, Mappings: status.MappedRanges(p.Peer.PodCIDRs, p.Peer.ExternalCIDR),
		Endpoints: p.Endpoints(), MTU: p.MTU, Unverified: e.unverified,
	}
	for i, g := range p.Gateways {
		one := GatewayResult{g.Address, proofBy(e.proof[i])}
		if i == 0 {
			r.Gateway, r.Proof = one.Address, one.Proof
		} else {
			r.OtherGateways = append(r.OtherGateways, one)
		}
	}
	return r
}

// proofBy is what a gateway has reported.
func proofBy(w witness) Proof {
	s := w.last
	p := Proof{
		Time: s.Time, Endpoint: s.Endpoint, LastHandshake: s.LastHandshake, RTT: time.Duration(s.RTT), Loss: s.Loss,
		Implementation: s.Implementation, Overlay: s.Overlay,
	}
	for _, n := range s.Nodes {
		if slices.Contains(w.ready, n.Name) && w.missing(n.Name) == "" {
			p.Nodes = append(p.Nodes, NodeProof{Name: n.Name, RTT: time.Duration(n.ProofRTT)})
		}
	}
	return p
}

// info describes the cluster of a site.
func (s *site) info() ClusterInfo {
	f := s.fabric
	return ClusterInfo{
		Context: s.cluster.Context, Name: s.name, ClusterID: s.id, Namespace: s.cluster.Namespace,
		PodCIDRs: f.PodCIDRs, ServiceCIDRs: f.ServiceCIDRs, NodeNetworks: f.NodeNetworks,
		ExternalCIDR: f.ExternalCIDR, InternalCIDR: f.InternalCIDR, CNI: f.CNI,
		Overlay: f.Overlay.Kind, MTU: f.MTU, Nodes: len(s.discovery.Nodes),
	}
}
