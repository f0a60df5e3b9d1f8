// Package records defines the documents that liqonet stores in a cluster: their Go types, encoding, validation and the
// names of the objects that contain them. It has no client and does no I/O.
//
// Every document has a schema version. Documents written by liqoctl are YAML, without anchors, aliases, merge keys and
// tags; documents written by helpers are JSON. Decoding takes time and memory in proportion to the length of a text,
// which is limited (MaxSize). An unknown version, a duplicate key, a wrong type or an invalid value is an error, and
// the caller leaves the object unchanged. Unknown fields are ignored: later releases add fields within a version.
// docs/contributing/design.md lists them.
package records

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/cidr"
)

// SchemaVersion is the version of the documents that this binary reads and writes.
const SchemaVersion = 1

// OverlayKind is the encapsulation between nodes and gateways. The zero value means "not chosen yet".
type OverlayKind string

// The overlay kinds.
const (
	Geneve OverlayKind = "geneve"
	VXLAN  OverlayKind = "vxlan"
)

// Fabric describes this cluster: ConfigMap "fabric".
type Fabric struct {
	Version      int            `json:"version"`
	ClusterID    string         `json:"clusterID"` // UID of namespace kube-system
	Name         string         `json:"name"`      // name of this cluster at its peers
	PodCIDRs     []netip.Prefix `json:"podCIDRs"`
	ServiceCIDRs []netip.Prefix `json:"serviceCIDRs"`
	NodeNetworks []netip.Prefix `json:"nodeNetworks,omitempty"`
	// ExternalCIDRs and InternalCIDRs have one entry for each address family, IPv4 first. IPv6 is not served yet.
	ExternalCIDRs []netip.Prefix `json:"externalCIDRs"`
	InternalCIDRs []netip.Prefix `json:"internalCIDRs"`
	Overlay       Overlay        `json:"overlay"`
	// bytes; the smallest MTU of the links that carry overlay and tunnel; 0: not measured yet.
	MTU int    `json:"mtu"`
	CNI string `json:"cni,omitempty"`
	// AllowForward makes node helpers add accept rules to foreign firewalls that would drop forwarded packets of
	// peerings.
	AllowForward bool `json:"allowForward,omitempty"`
}

// ExternalCIDR returns the external CIDR of IPv4.
func (f Fabric) ExternalCIDR() netip.Prefix { return first(f.ExternalCIDRs) }

// InternalCIDR returns the internal CIDR of IPv4.
func (f Fabric) InternalCIDR() netip.Prefix { return first(f.InternalCIDRs) }

// first returns the IPv4 entry of a list with one for each address family; the zero value: it is empty.
func first[T any](byFamily []T) (ipv4 T) {
	if len(byFamily) > 0 {
		ipv4 = byFamily[0]
	}
	return ipv4
}

// DefaultOverlayPort is the UDP port of the overlay on nodes and gateways.
const DefaultOverlayPort = 6091

// Overlay describes how nodes and gateways of this cluster reach each other.
type Overlay struct {
	Kind OverlayKind `json:"kind"`
	Port uint16      `json:"port"` // UDP
}

// Mapping is a range of one cluster of a peering: its real addresses and those by which the other cluster reaches them.
// Both prefixes have the same length; host bits are preserved.
type Mapping = cidr.Mapping

// MaxRefused limits the number of peerings in Node.Refused, MaxReason the length of a reason.
const (
	MaxRefused = 16
	MaxReason  = 300
)

// MaxPeerEndpoints limits the addresses of the server's nodes in a gateway's record.
const MaxPeerEndpoints = 16

// Gateway is the location of a peering's active gateway: ConfigMap "gateway-NAME". The gateway writes it on changes;
// nodes apply it.
type Gateway struct {
	Version int        `json:"version"`
	Pod     string     `json:"pod"`
	Node    string     `json:"node"`
	PodIP   netip.Addr `json:"podIP"`
	// Endpoint is the underlay address from which the peer's gateway sends; the zero value: no packet received yet.
	// With several gateways, it is that of the first.
	Endpoint netip.AddrPort `json:"endpoint,omitzero"`
	// OtherEndpoints are those of the peer's other gateways.
	OtherEndpoints []netip.AddrPort `json:"otherEndpoints,omitempty"`
	// PeerNodes are nodes of the peer that answer probes, by their addresses in this cluster.
	PeerNodes []netip.Addr `json:"peerNodes,omitempty"`
	// PeerEndpoints are addresses of the server's nodes, received in echoes of its gateways, sorted. A client tries
	// them in addition to the endpoints in its record.
	PeerEndpoints []netip.Addr `json:"peerEndpoints,omitempty"`
	// Epoch is the start time of the pod, in Unix seconds; zero: not known.
	Epoch uint32 `json:"epoch,omitempty"`
}

// ObservedEndpoints returns the addresses from which the peer's gateways send.
func (g Gateway) ObservedEndpoints() (all []netip.Addr) {
	for _, e := range append([]netip.AddrPort{g.Endpoint}, g.OtherEndpoints...) {
		if e.IsValid() && !slices.Contains(all, e.Addr()) {
			all = append(all, e.Addr())
		}
	}
	return all
}

// Status has the measurements of a gateway: ConfigMap "status-NAME".
type Status struct {
	Version int       `json:"version"`
	Time    time.Time `json:"time"` // of this report
	// The next report follows within this time; zero: not known.
	Every          Duration       `json:"every,omitzero"`
	KeyCreated     time.Time      `json:"keyCreated,omitzero"` // creation time of the key pair; zero: not known
	Pod            string         `json:"pod"`
	Implementation Implementation `json:"implementation"`
	Overlay        OverlayKind    `json:"overlay"`
	// TunnelStatus is the status of the tunnel. With several tunnels, it is that of the tunnel with the latest answer,
	// with the bytes of all.
	TunnelStatus
	// Tunnels are those to the peer's gateways; the tunnel to gateway n has index n-1. Empty if there is one tunnel.
	Tunnels []TunnelStatus `json:"tunnels,omitempty"`
	Nodes   []NodeStatus   `json:"nodes,omitempty"`   // sorted by name
	Exposed []Exposed      `json:"exposed,omitempty"` // external hosts that the peer can reach at present
	Failed  Failures       `json:"failed,omitempty"`
	Drift   Drift          `json:"drift,omitzero"` // of the gateway's kernel
}

// AllTunnels returns the tunnels to all gateways of the peer; the tunnel to gateway n has index n-1.
func (s Status) AllTunnels() []TunnelStatus {
	if len(s.Tunnels) == 0 {
		return []TunnelStatus{s.TunnelStatus}
	}
	return s.Tunnels
}

// Session is the session of a tunnel, as its driver describes it.
type Session struct {
	Since  time.Time `json:"since,omitzero"`   // end of its last handshake; zero: none yet
	Usable bool      `json:"usable,omitempty"` // it has not expired
}

// TunnelStatus has a gateway's measurements of its tunnel to a gateway of the peer.
type TunnelStatus struct {
	Endpoint netip.AddrPort `json:"endpoint,omitzero"`
	Session  Session        `json:"session,omitzero"`
	LastEcho time.Time      `json:"lastEcho,omitzero"` // last answer of the peer's gateway
	RTT      Duration       `json:"rtt"`               // median of the last answers between gateways
	Loss     float64        `json:"loss"`              // share of unanswered echoes between gateways, 0 to 1
	Path     PathSize       `json:"path,omitzero"`     // between the gateways, outside the tunnel
	RxBytes  int64          `json:"rxBytes"`
	TxBytes  int64          `json:"txBytes"`
	// Transport is WebSocket while that carries the tunnel's packets; "": UDP does.
	Transport Transport `json:"transport,omitempty"`
	// Congestion is the congestion control by which the gateway sends to WebSocket then; "": there is no connection.
	Congestion string `json:"congestionControl,omitempty"`
	// Unused is the reason why the gateway sends no pod traffic through this tunnel; "": it does.
	Unused string `json:"unused,omitempty"`
}

// NodeStatus is the path to a node, as measured by the gateway from the node's echoes.
type NodeStatus struct {
	Name     string    `json:"name"`
	LastEcho time.Time `json:"lastEcho,omitzero"`
	// LastProof is the last time that a node of the peer answered a full-size packet of this node.
	LastProof time.Time `json:"lastProof,omitzero"`
	RTT       Duration  `json:"rtt"` // node to gateway and back
	ProofRTT  Duration  `json:"proofRTT"`
	Path      PathSize  `json:"path,omitzero"`  // node to gateway, outside the overlay
	Drift     Drift     `json:"drift,omitzero"` // of the node's kernel
	// Refused is the reason why the node does not apply the peering's record; "": it does.
	Refused string `json:"refused,omitempty"`
	// Unused is set if the node sends no pod traffic through this gateway, but through others.
	Unused bool `json:"unused,omitempty"`
	// Deaf is set if the node has other gateways and gets no answers from this one.
	Deaf bool `json:"deaf,omitempty"`
}

// PathSize is a measurement of a path's MTU. The zero value: not measured yet.
type PathSize struct {
	Asked bool `json:"asked"`
	// MTU is the size in bytes of the largest IP packet that crosses the path in both directions unfragmented; 0: no
	// answer.
	MTU int `json:"mtu,omitempty"`
}

// Node is the report of a node, in an annotation of the Lease that holds its number.
type Node struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Number  int    `json:"number"` // from 1 to MaxNodes; its internal address follows from it
	// Address is the address of the node for other clusters: its external address if it has one. The zero value: not
	// known.
	Address netip.Addr `json:"address,omitzero"`
	// PodCIDRs are the ranges of the node's pods.
	PodCIDRs []netip.Prefix `json:"podCIDRs,omitempty"`
	// Pods are addresses of the node's pods outside PodCIDRs.
	Pods []netip.Addr `json:"pods,omitempty"`
	// OverlaySources are the source addresses of this node's overlay packets as they arrive at each gateway. They
	// depend on the gateway's node and on the CNI. The gateway sends to these addresses.
	OverlaySources map[GatewayID]netip.Addr `json:"overlaySources,omitempty"`
	// bytes; the smallest MTU of the links that lead to pods and to other nodes.
	MTU    int          `json:"mtu"`
	Kernel Capabilities `json:"kernel"`
	// Peerings are those whose desired state is in this node's kernel, sorted.
	Peerings []string `json:"peerings,omitempty"`
	// Guarded are those of which this node's kernel has only the guard, sorted: their record is deleted or rejected.
	Guarded []string `json:"guarded,omitempty"`
	// Refused has, by peering, the reason why this node does not apply its record.
	Refused map[string]string `json:"refused,omitempty"`
	// ForwardDrops are foreign firewalls in this node's kernel that drop forwarded packets by default.
	ForwardDrops []ForwardDrop `json:"forwardDrops,omitempty"`
	// NotForwarding reports that net.ipv4.ip_forward is 0 in this node's kernel.
	NotForwarding bool `json:"notForwarding,omitempty"`
	// Drift counts restored changes in this node's kernel, of all peerings.
	Drift Drift `json:"drift,omitzero"`
	// Clean reports that this node's kernel has no liqonet state left, after the fabric was deleted.
	Clean bool `json:"clean,omitempty"`
	// Surroundings are the addresses that this node uses besides those of pods, Services and peers.
	Surroundings Surroundings `json:"surroundings,omitzero"`
	// Witness has an entry for each gateway that asked this node for a report: "" if its packets cross that gateway,
	// else the fault.
	Witness map[GatewayID]string `json:"witness,omitempty"`
}

// ForwardDrop is a chain for forwarded packets whose policy is drop.
type ForwardDrop struct {
	Chain string `json:"chain"` // with table and family, such as "ip filter FORWARD"
}

// String returns the chain as shown in messages.
func (d ForwardDrop) String() string { return fmt.Sprintf("chain %q", d.Chain) }

// Capabilities are features of the node's kernel.
type Capabilities struct {
	Release   string `json:"release"`
	WireGuard bool   `json:"wireGuard"`
	Geneve    bool   `json:"geneve"`
	VXLAN     bool   `json:"vxlan"`
}

// Duration is a time.Duration with Go's text form, such as "1.5ms".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}
