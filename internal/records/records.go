// Package records holds the documents that liqonet keeps in a cluster: their Go types, their encoding, their
// validation and the names of the objects that carry them. It has no client and does no I/O.
//
// Every document is YAML with a schema version. Decoding is strict: an unknown field, a version that this
// binary does not know or a value that makes no sense is an error, and the caller leaves the object as it is.
package records

import (
	"fmt"
	"net/netip"
	"time"

	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/wireguard"
)

// SchemaVersion is the version that every document written by this binary bears.
const SchemaVersion = 1

// OverlayKind is the encapsulation between nodes and gateways. The zero value means "not decided yet".
type OverlayKind string

// The overlay kinds.
const (
	Geneve OverlayKind = "geneve"
	VXLAN  OverlayKind = "vxlan"
)

// Role is a cluster's part in a peering's tunnel.
type Role string

// The roles. The server listens at an address that the client can reach; the client begins.
const (
	Server Role = "server"
	Client Role = "client"
)

// Implementation is that of WireGuard.
type Implementation = wireguard.Implementation

// The implementations of WireGuard. Auto is the kernel's where there is one.
const (
	Auto      = wireguard.Auto
	Kernel    = wireguard.Kernel
	Userspace = wireguard.Userspace
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
	MTU          int            `json:"mtu"` // bytes; the smallest of the links that carry overlay and tunnel; 0: not measured yet
	CNI          string         `json:"cni,omitempty"`
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

// Peering is what the helpers of this cluster need to know of one peer: ConfigMap "peering-NAME".
type Peering struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Role    Role   `json:"role"`
	Peer    Peer   `json:"peer"`
	// Local is how the peer sees this cluster. The zero value: not known here.
	Local  Local  `json:"local,omitzero"`
	Tunnel Tunnel `json:"tunnel"`
	// OverlayID is the virtual network identifier (24 bits, not 0) of packets between nodes and this gateway.
	OverlayID uint32 `json:"overlayID"`
	// GatewayAddress is the internal address of the gateway's end of the overlay.
	GatewayAddress netip.Addr `json:"gatewayAddress"`
	// MTU is the size in bytes of the largest inner IP packet that travels the whole path unfragmented.
	MTU int `json:"mtu"`
	// ClampMSS limits the TCP maximum segment size to what fits the MTU.
	ClampMSS bool `json:"clampMSS"`
	// Exposed are hosts outside this cluster that the peer may reach, at most MaxExposed, sorted by host.
	Exposed []Exposed `json:"exposed,omitempty"`
}

// MaxRefused is for how many peerings a node reports why it does not serve them, MaxReason how long a reason is.
const (
	MaxRefused = 16
	MaxReason  = 300
)

// MaxExposed is how many hosts a peering can expose.
const MaxExposed = 256

// Seen are the ranges by which this cluster reaches the peer's pods, nodes and hosts.
func (p Peering) Seen() []netip.Prefix {
	all := p.Peer.CIDRs()
	seen := make([]netip.Prefix, len(all))
	for i, m := range all {
		seen[i] = m.Seen
	}
	return seen
}

// ExposedAs is how the peering exposes a host; the zero value: it does not.
func (p Peering) ExposedAs(host netip.Addr) Exposed {
	for _, e := range p.Exposed {
		if e.Host == host {
			return e
		}
	}
	return Exposed{}
}

// Exposed is a host outside this cluster, as peers reach it.
type Exposed = cidr.Exposed

// Peer is the other cluster of a peering.
type Peer struct {
	ClusterID    string    `json:"clusterID"`
	Name         string    `json:"name"`
	PodCIDRs     []Mapping `json:"podCIDRs"`
	ExternalCIDR Mapping   `json:"externalCIDR"`
	PublicKey    string    `json:"publicKey"` // WireGuard, base64
}

// CIDRs returns the mappings of all of the peer's ranges.
func (p Peer) CIDRs() []Mapping {
	return append(append([]Mapping(nil), p.PodCIDRs...), p.ExternalCIDR)
}

// Local are the ranges of this cluster as its peer sees them. The peer alone decides that: helpers do not need
// it, the translation of addresses does.
type Local struct {
	PodCIDRs     []Mapping `json:"podCIDRs"`
	ExternalCIDR Mapping   `json:"externalCIDR"`
}

// Known reports whether the peer's word is there.
func (l Local) Known() bool { return len(l.PodCIDRs) > 0 }

// CIDRs returns the mappings of all ranges, none where they are not known.
func (l Local) CIDRs() []Mapping {
	if !l.Known() {
		return nil
	}
	return append(append([]Mapping(nil), l.PodCIDRs...), l.ExternalCIDR)
}

// Tunnel is this side's end of the WireGuard tunnel.
type Tunnel struct {
	Implementation Implementation `json:"implementation"`
	Address        netip.Prefix   `json:"address"`             // this end, with the length of the link's range
	PeerAddress    netip.Addr     `json:"peerAddress"`         // the other end
	ListenPort     uint16         `json:"listenPort"`          // UDP
	Endpoints      []string       `json:"endpoints,omitempty"` // host:port of the server, tried in turn; empty on the server
}

// Gateway tells where a peering's active gateway runs: ConfigMap "gateway-NAME". The gateway writes it when
// something changes; nodes follow it.
type Gateway struct {
	Version int        `json:"version"`
	Pod     string     `json:"pod"`
	Node    string     `json:"node"`
	PodIP   netip.Addr `json:"podIP"`
	// Endpoint is the underlay address at which the peer's gateway is heard; the zero value: not heard yet.
	Endpoint netip.AddrPort `json:"endpoint,omitzero"`
	// PeerNodes are addresses, as seen from this cluster, of nodes of the peer that answer probes.
	PeerNodes []netip.Addr `json:"peerNodes,omitempty"`
}

// Status is what the active gateway measures: ConfigMap "status-NAME".
type Status struct {
	Version        int            `json:"version"`
	Time           time.Time      `json:"time"` // of this report
	Pod            string         `json:"pod"`
	Implementation Implementation `json:"implementation"`
	Overlay        OverlayKind    `json:"overlay"`
	Endpoint       netip.AddrPort `json:"endpoint,omitzero"`
	LastHandshake  time.Time      `json:"lastHandshake,omitzero"`
	LastEcho       time.Time      `json:"lastEcho,omitzero"` // last answer of the peer's gateway
	RTT            Duration       `json:"rtt"`               // median of the last answers between gateways
	Loss           float64        `json:"loss"`              // share of unanswered echoes between gateways, 0 to 1
	Path           PathSize       `json:"path,omitzero"`     // between the gateways, outside the tunnel
	RxBytes        int64          `json:"rxBytes"`
	TxBytes        int64          `json:"txBytes"`
	Nodes          []NodeStatus   `json:"nodes,omitempty"`   // sorted by name
	Exposed        []Exposed      `json:"exposed,omitempty"` // hosts outside that the peer reaches now
	Failed         []string       `json:"failed,omitempty"`
	Drift          Drift          `json:"drift,omitzero"` // of the gateway's kernel
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
	// PodCIDRs are the ranges from which pods of this node get their addresses.
	PodCIDRs []netip.Prefix `json:"podCIDRs,omitempty"`
	// Pods are addresses of pods of this node outside PodCIDRs.
	Pods []netip.Addr `json:"pods,omitempty"`
	// OverlaySources are the addresses that this node's overlay packets bear when they reach a peering's gateway,
	// by peering: where the gateway is and what the CNI does decides. The gateway sends there too.
	OverlaySources map[string]netip.Addr `json:"overlaySources,omitempty"`
	MTU            int                   `json:"mtu"` // bytes; the smallest of the links that lead to pods and to other nodes
	Kernel         Capabilities          `json:"kernel"`
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

// Document is what Encode and Decode take: every record of this package.
type Document interface {
	validate() error
	// identity is what the ConfigMap must be that holds the record, with the peering's name where the record has it.
	identity() Identity
}

// Encode returns a record as YAML.
func Encode(d Document) (string, error) {
	if err := d.validate(); err != nil {
		return "", err
	}
	return Draft(d)
}

// Draft is Encode for a record that need not be complete yet.
func Draft(d Document) (string, error) {
	b, err := yaml.Marshal(d)
	return string(b), err
}

// Decode reads a record from YAML, strictly.
func Decode[T Document](text string) (T, error) {
	d, err := ReadYAML[T](text)
	if err != nil {
		return d, err
	}
	return d, d.validate()
}

// ReadYAML reads a document of this schema's version, strictly: a field that is not known is an error. The version comes
// first: a newer schema may well have fields that are unknown here.
func ReadYAML[T any](text string) (T, error) {
	var probe struct {
		Version int `json:"version"`
	}
	var d, zero T
	if err := yaml.Unmarshal([]byte(text), &probe); err != nil {
		return zero, fmt.Errorf("damaged document: %w", err)
	}
	if probe.Version != SchemaVersion {
		return zero, fmt.Errorf("schema version %d, this binary knows %d", probe.Version, SchemaVersion)
	}
	if err := yaml.UnmarshalStrict([]byte(text), &d); err != nil {
		return zero, fmt.Errorf("damaged document: %w", err)
	}
	return d, nil
}
