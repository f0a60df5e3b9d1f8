// Package records holds the documents that liqonet keeps in a cluster: their Go types, their encoding, their
// validation and the names of the objects that carry them. It has no client and does no I/O.
//
// Every document has a schema version. Those that liqoctl writes are YAML, without anchors, aliases, merge keys and
// tags; those that helpers write are JSON. Decoding takes time and memory in proportion to the length of a text, which
// is bounded (MaxSize). A version that this binary does not know, a key twice, a wrong type or a value that makes no
// sense is an error, and the caller leaves the object as it is. A field that this binary does not know is ignored:
// later releases add fields within a version. docs/upgrade.md says which.
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

// OverlayKind is the encapsulation between nodes and gateways. The zero value means "not decided yet".
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
	Name         string         `json:"name"`      // by which peers call this cluster
	PodCIDRs     []netip.Prefix `json:"podCIDRs"`
	ServiceCIDRs []netip.Prefix `json:"serviceCIDRs"`
	NodeNetworks []netip.Prefix `json:"nodeNetworks,omitempty"`
	ExternalCIDR netip.Prefix   `json:"externalCIDR"`
	InternalCIDR netip.Prefix   `json:"internalCIDR"`
	Overlay      Overlay        `json:"overlay"`
	// bytes; the smallest of the links that carry overlay and tunnel; 0: not measured yet.
	MTU int    `json:"mtu"`
	CNI string `json:"cni,omitempty"`
	// AllowForward has node helpers add rules to firewalls of others that would drop what they forward.
	AllowForward bool `json:"allowForward,omitempty"`
}

// DefaultOverlayPort is the UDP port of the overlay, in nodes and gateways alike.
const DefaultOverlayPort = 6091

// Overlay says how nodes and gateways of this cluster reach each other.
type Overlay struct {
	Kind OverlayKind `json:"kind"`
	Port uint16      `json:"port"` // UDP
}

// Mapping is a range of one cluster of a peering: its real addresses there and those by which the other cluster
// reaches them. Both prefixes have the same length; host bits are kept.
type Mapping = cidr.Mapping

// MaxRefused is for how many peerings a node reports why it does not serve them, MaxReason how long a reason is.
const (
	MaxRefused = 16
	MaxReason  = 300
)

// MaxPeerEndpoints is how many addresses of the server's nodes a gateway knows.
const MaxPeerEndpoints = 16

// Gateway tells where a peering's active gateway runs: ConfigMap "gateway-NAME". The gateway writes it when
// something changes; nodes follow it.
type Gateway struct {
	Version int        `json:"version"`
	Pod     string     `json:"pod"`
	Node    string     `json:"node"`
	PodIP   netip.Addr `json:"podIP"`
	// Endpoint is the underlay address at which the peer's gateway is heard; the zero value: not heard yet. Of several,
	// it is that of the first.
	Endpoint netip.AddrPort `json:"endpoint,omitzero"`
	// OtherEndpoints are those at which the peer's other gateways are heard.
	OtherEndpoints []netip.AddrPort `json:"otherEndpoints,omitempty"`
	// PeerNodes are addresses, as seen from this cluster, of nodes of the peer that answer probes.
	PeerNodes []netip.Addr `json:"peerNodes,omitempty"`
	// PeerEndpoints are addresses of the server's nodes, which its gateways have sent in their echoes, sorted. A client
	// tries them beside the endpoints of its record.
	PeerEndpoints []netip.Addr `json:"peerEndpoints,omitempty"`
	// Epoch is that of the pod, in Unix seconds; zero: not known.
	Epoch uint32 `json:"epoch,omitempty"`
}

// Heard are the addresses at which the gateways of the peer are heard.
func (g Gateway) Heard() (all []netip.Addr) {
	for _, e := range append([]netip.AddrPort{g.Endpoint}, g.OtherEndpoints...) {
		if e.IsValid() && !slices.Contains(all, e.Addr()) {
			all = append(all, e.Addr())
		}
	}
	return all
}

// Status is what a gateway measures: ConfigMap "status-NAME".
type Status struct {
	Version int       `json:"version"`
	Time    time.Time `json:"time"` // of this report
	// After this report, the next one comes at the latest; zero: not stated.
	Every          Duration       `json:"every,omitzero"`
	KeyCreated     time.Time      `json:"keyCreated,omitzero"` // when the gateway's key pair was made; zero: not known
	Pod            string         `json:"pod"`
	Implementation Implementation `json:"implementation"`
	Overlay        OverlayKind    `json:"overlay"`
	// TunnelStatus is that of its tunnel. Where it has several: of the one that was answered last, with the bytes of
	// all.
	TunnelStatus
	// Tunnels are those to the gateways of the peer, by their number less one; none where there is one.
	Tunnels []TunnelStatus `json:"tunnels,omitempty"`
	Nodes   []NodeStatus   `json:"nodes,omitempty"`   // sorted by name
	Exposed []Exposed      `json:"exposed,omitempty"` // hosts outside that the peer reaches now
	Failed  Failures       `json:"failed,omitempty"`
	Drift   Drift          `json:"drift,omitzero"` // of the gateway's kernel
}

// AllTunnels are those to all gateways of the peer, by their number less one.
func (s Status) AllTunnels() []TunnelStatus {
	if len(s.Tunnels) == 0 {
		return []TunnelStatus{s.TunnelStatus}
	}
	return s.Tunnels
}

// TunnelStatus is what a gateway measures of its tunnel to a gateway of the peer.
type TunnelStatus struct {
	Endpoint      netip.AddrPort `json:"endpoint,omitzero"`
	LastHandshake time.Time      `json:"lastHandshake,omitzero"`
	LastEcho      time.Time      `json:"lastEcho,omitzero"` // last answer of the peer's gateway
	RTT           Duration       `json:"rtt"`               // median of the last answers between gateways
	Loss          float64        `json:"loss"`              // share of unanswered echoes between gateways, 0 to 1
	Path          PathSize       `json:"path,omitzero"`     // between the gateways, outside the tunnel
	RxBytes       int64          `json:"rxBytes"`
	TxBytes       int64          `json:"txBytes"`
	// Unused is why the gateway sends no packets of pods by this tunnel; "": it does.
	Unused string `json:"unused,omitempty"`
}

// NodeStatus is one node's path as its gateway knows it from the echoes that the node sends.
type NodeStatus struct {
	Name     string    `json:"name"`
	LastEcho time.Time `json:"lastEcho,omitzero"`
	// LastProof is when a full-size packet of this node was last answered by a node of the peer.
	LastProof time.Time `json:"lastProof,omitzero"`
	RTT       Duration  `json:"rtt"` // node to gateway and back
	ProofRTT  Duration  `json:"proofRTT"`
	Path      PathSize  `json:"path,omitzero"`  // node to gateway, outside the overlay
	Drift     Drift     `json:"drift,omitzero"` // of the node's kernel
	// Refused is why the node does not serve the peering as its record says; "": it does.
	Refused string `json:"refused,omitempty"`
	// Unused says that the node sends no packets of pods by this gateway, but by others.
	Unused bool `json:"unused,omitempty"`
}

// PathSize is what was measured of the size of a path. The zero value: nobody has asked yet.
type PathSize struct {
	Asked bool `json:"asked"`
	// MTU is the size in bytes of the largest IP packet that goes there and back in one piece; 0: nobody answers.
	MTU int `json:"mtu,omitempty"`
}

// Node is what one node reports of itself, in an annotation of the Lease that holds its internal address.
type Node struct {
	Version  int        `json:"version"`
	Name     string     `json:"name"`
	Internal netip.Addr `json:"internal"`
	// Address is where other clusters reach the node: its external address if it has one. The zero value: not known.
	Address netip.Addr `json:"address,omitzero"`
	// PodCIDRs are the ranges from which pods of this node get their addresses.
	PodCIDRs []netip.Prefix `json:"podCIDRs,omitempty"`
	// Pods are addresses of pods of this node outside PodCIDRs.
	Pods []netip.Addr `json:"pods,omitempty"`
	// OverlaySources are the addresses that this node's overlay packets bear when they reach a peering's gateway,
	// by gateway: where it is and what the CNI does decides. The gateway sends there too.
	OverlaySources map[GatewayID]netip.Addr `json:"overlaySources,omitempty"`
	// bytes; the smallest of the links that lead to pods and to other nodes.
	MTU    int          `json:"mtu"`
	Kernel Capabilities `json:"kernel"`
	// Peerings are those whose wanted state is in this node's kernel, sorted.
	Peerings []string `json:"peerings,omitempty"`
	// Guarded are those of which this node's kernel has the guard alone, sorted: their record is gone or refused.
	Guarded []string `json:"guarded,omitempty"`
	// Refused says, by peering, why this node does not serve it as its record says.
	Refused map[string]string `json:"refused,omitempty"`
	// ForwardDrops are firewalls of others in this node's kernel that drop what no rule of theirs accepts.
	ForwardDrops []ForwardDrop `json:"forwardDrops,omitempty"`
	// Drift is what came back in this node's kernel, whatever peering it belongs to.
	Drift Drift `json:"drift,omitzero"`
	// Clean says that nothing of liqonet is left in this node's kernel: the answer to a deleted fabric.
	Clean bool `json:"clean,omitempty"`
	// Surroundings are the addresses that this node uses besides those of pods, Services and peers.
	Surroundings Surroundings `json:"surroundings,omitzero"`
	// Witness has the gateways that asked this node to report on them: "" for each by which its packets cross, else the
	// fault.
	Witness map[GatewayID]string `json:"witness,omitempty"`
}

// ForwardDrop is a chain for forwarded packets whose policy is to drop.
type ForwardDrop struct {
	Chain string `json:"chain"` // with table and family, such as "ip filter FORWARD"
}

// String names the chain as messages do.
func (d ForwardDrop) String() string { return fmt.Sprintf("chain %q", d.Chain) }

// Capabilities are what the node's kernel offers.
type Capabilities struct {
	Release   string `json:"release"`
	WireGuard bool   `json:"wireGuard"`
	Geneve    bool   `json:"geneve"`
	VXLAN     bool   `json:"vxlan"`
}

// Duration is a time.Duration whose text is Go's, such as "1.5ms".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}
