package peering

import (
	"net/netip"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/seconds"
)

// InitResult is the result of Init.
type InitResult struct {
	Cluster ClusterInfo `json:"cluster"`
	// Unverified are the Ready nodes whose helpers have not reported in time.
	Unverified []UnverifiedNode     `json:"unverifiedNodes,omitempty"`
	Stages     []progress.StageTime `json:"stages"`
	Objects    []kube.Change        `json:"objects,omitempty"` // those that were created or changed
	Changed    bool                 `json:"changed"`
}

// UnverifiedNode is a Ready node that was not verified.
type UnverifiedNode struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// ClusterInfo describes a cluster and its installation.
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

// Connection is the result of Connect.
type Connection struct {
	Local   SideResult           `json:"local"`
	Remote  SideResult           `json:"remote"`
	MTU     int                  `json:"mtu"`  // bytes, of packets between pods of the two
	Hops    []desired.Hop        `json:"hops"` // which determine the MTU
	Stages  []progress.StageTime `json:"stages"`
	Took    seconds.Duration     `json:"tookSeconds"`
	Changed bool                 `json:"changed"`           // in either cluster
	Objects []kube.Change        `json:"objects,omitempty"` // those that were created or changed
}

// SideResult is one cluster's part of a Connection.
type SideResult struct {
	Cluster ClusterInfo `json:"cluster"`
	// Peering is the peering's name in this cluster: the name of the other one.
	Peering   string                `json:"peering"`
	Role      records.Role          `json:"role"`
	Addresses []status.AddressRange `json:"addresses"` // of the other cluster's CIDRs
	Endpoints []string              `json:"endpoints,omitempty"`
	WebSocket []string              `json:"webSocket,omitempty"` // URLs, as Endpoints
	Gateway   netip.Addr            `json:"gatewayAddress"`      // internal address of the first gateway
	MTU       int                   `json:"mtu"`                 // bytes, of packets between pods of the two
	Proof     Proof                 `json:"proof"`               // by the first gateway
	// OtherGateways are all gateways but the first.
	OtherGateways []GatewayResult `json:"otherGateways,omitempty"`
	// Unverified are the Ready nodes that not all gateways have verified in time.
	Unverified []UnverifiedNode `json:"unverifiedNodes,omitempty"`
}

// GatewayResult is one of several gateways of a cluster.
type GatewayResult struct {
	Address netip.Addr `json:"gatewayAddress"` // internal
	Proof   Proof      `json:"proof"`
}

// Proof is what was verified from one cluster: the handshake, echoes between the gateways, and for each node the reply
// of a node of the peer to a full-size packet.
type Proof struct {
	Time           time.Time              `json:"time"`
	Endpoint       netip.AddrPort         `json:"endpoint,omitzero"`
	LastHandshake  time.Time              `json:"lastHandshake"`
	RTT            seconds.Duration       `json:"rttSeconds"` // between the gateways
	Loss           float64                `json:"loss"`
	Implementation records.Implementation `json:"implementation"`
	Overlay        records.OverlayKind    `json:"overlay"`
	Nodes          []NodeProof            `json:"nodes"`
}

// NodeProof is the part of a Proof for one node.
type NodeProof struct {
	Name string           `json:"name"`
	RTT  seconds.Duration `json:"rttSeconds"` // round trip to a node of the peer
}

// result returns the result for a verified member.
func (m *member) result() SideResult {
	p := m.written
	r := SideResult{
		Cluster: m.info(), Peering: m.peering, Role: m.role, Addresses: status.AddressRanges(p.Peer.PodCIDRs, p.Peer.ExternalCIDR()),
		Endpoints: p.Endpoints(), WebSocket: p.WebSockets(), MTU: p.MTU, Unverified: m.unverified,
	}
	for i := range p.Gateways {
		one := GatewayResult{p.GatewayAddress(m.fabric.InternalCIDR(), i+1), proofOf(m.verifications[i])}
		if i == 0 {
			r.Gateway, r.Proof = one.Address, one.Proof
		} else {
			r.OtherGateways = append(r.OtherGateways, one)
		}
	}
	return r
}

// proofOf returns the Proof from a gateway's last report.
func proofOf(w verification) Proof {
	s := w.last
	p := Proof{
		Time: s.Time, Endpoint: s.Endpoint, LastHandshake: s.Session.Since, RTT: seconds.Duration(s.RTT), Loss: s.Loss,
		Implementation: s.Implementation, Overlay: s.Overlay,
	}
	for _, n := range s.Nodes {
		if slices.Contains(w.ready, n.Name) && w.missing(n.Name) == "" {
			p.Nodes = append(p.Nodes, NodeProof{Name: n.Name, RTT: seconds.Duration(n.ProofRTT)})
		}
	}
	return p
}

// info describes the site's cluster.
func (s *site) info() ClusterInfo {
	f := s.fabric
	return ClusterInfo{
		Context: s.cluster.Context, Name: s.name, ClusterID: s.id, Namespace: s.cluster.Namespace,
		PodCIDRs: f.PodCIDRs, ServiceCIDRs: f.ServiceCIDRs, NodeNetworks: f.NodeNetworks,
		ExternalCIDR: f.ExternalCIDR(), InternalCIDR: f.InternalCIDR(), CNI: f.CNI,
		Overlay: f.Overlay.Kind, MTU: f.MTU, Nodes: len(s.discovery.Nodes),
	}
}
