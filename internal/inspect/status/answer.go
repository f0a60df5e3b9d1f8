package status

import (
	"slices"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/seconds"
)

// Peering is the health of a peering, as one cluster observes it. Unknown values are absent.
type Peering struct {
	Cluster string       `json:"cluster"` // the cluster that observes, by its name at its peers
	Peer    string       `json:"peer"`
	Role    records.Role `json:"role,omitempty"`
	State   health.State `json:"state"`
	Reason  string       `json:"reason,omitempty"` // if not healthy, or of a warning
	Next    string       `json:"next,omitempty"`   // the command that explains the state, if not healthy
	// Findings are what is wrong, from which state and reason follow.
	Findings  []health.Finding `json:"findings,omitempty"`
	Nodes     NodeCount        `json:"nodes"`
	MTU       MTU              `json:"mtu,omitzero"`
	Overlay   Overlay          `json:"overlay,omitzero"`
	Addresses []AddressRange   `json:"addresses,omitempty"` // of the peer's ranges
	// OwnAddresses are those of this cluster at the peer; empty if unknown.
	OwnAddresses []AddressRange `json:"ownAddresses,omitempty"`
	// Exposed are the hosts outside this cluster that the peer may reach.
	Exposed  []ExposedHost `json:"exposed,omitempty"`
	Gateways []Gateway     `json:"gateways,omitempty"`
	// Warnings name causes of lost pod packets that verification does not detect, because it sends packets of nodes.
	Warnings []string `json:"warnings,omitempty"`
}

// MTU has the sizes of packets, in bytes. Those that are not known are zero.
type MTU struct {
	Value  int    `json:"value,omitempty"`  // of packets between pods
	Source string `json:"source,omitempty"` // of the value: "measured", or "set" by a flag
	// The path MTUs that were measured, the smallest of all.
	Gateways int `json:"gateways,omitempty"` // between gateways
	Nodes    int `json:"nodes,omitempty"`    // between a node and a gateway
}

// Overlay is how nodes and gateways reach each other.
type Overlay struct {
	Kind records.OverlayKind `json:"kind"`
	Port uint16              `json:"port,omitempty"` // UDP; 0: not known
}

// NodeCount counts the nodes that should take part in a peering.
type NodeCount struct {
	Ready int `json:"ready"` // whose packets cross by one of the gateways
	Total int `json:"total"`
	// Unverified are the others.
	Unverified []Unverified `json:"unverified,omitempty"`
}

// Unverified is a node whose packets do not cross.
type Unverified struct {
	Name   string `json:"name"`
	Reason string `json:"reason"` // as the first gateway sees it
}

// Gateway is the health of one gateway of a peering.
type Gateway struct {
	Number     int                    `json:"number"`
	State      health.State           `json:"state"`
	Reason     string                 `json:"reason,omitempty"` // if not healthy
	Pod        string                 `json:"pod,omitempty"`
	Node       string                 `json:"node,omitempty"`
	WireGuard  records.Implementation `json:"wireguard,omitempty"`
	ReportAge  *seconds.Duration      `json:"reportAgeSeconds,omitempty"`
	KeyCreated time.Time              `json:"keyCreated,omitzero"` // creation time of its key pair
	NodesReady int                    `json:"nodesReady"`          // nodes whose packets cross by this gateway
	Nodes      []NodeState            `json:"nodes,omitempty"`
	Tunnels    []Tunnel               `json:"tunnels,omitempty"`
	Drift      records.Drift          `json:"drift,omitzero"` // of its kernel
}

// NodeState is the state of one node at a gateway.
type NodeState struct {
	Name     string            `json:"name"`
	Ready    bool              `json:"ready"`                     // its packets cross
	RTT      *seconds.Duration `json:"rttSeconds,omitempty"`      // to the gateway and back
	ProofRTT *seconds.Duration `json:"proofRTTSeconds,omitempty"` // to a node of the peer and back
	PathMTU  int               `json:"pathMTU,omitempty"`         // bytes, to the gateway, measured
	Drift    records.Drift     `json:"drift,omitzero"`            // of the node's kernel
}

// Tunnel is the health of a tunnel of a gateway.
type Tunnel struct {
	PeerGateway  int               `json:"peerGateway"` // number of the peer's gateway
	State        health.State      `json:"state"`
	Reason       string            `json:"reason,omitempty"`              // if not healthy
	Endpoint     string            `json:"endpoint,omitempty"`            // of the last packet, else the configured one
	HandshakeAge *seconds.Duration `json:"handshakeAgeSeconds,omitempty"` // at the time of the report
	RTT          *seconds.Duration `json:"rttSeconds,omitempty"`
	Loss         float64           `json:"loss"` // of echoes, 0 to 1
	RxBytes      int64             `json:"rxBytes"`
	TxBytes      int64             `json:"txBytes"`
	PathMTU      int               `json:"pathMTU,omitempty"` // bytes, measured
	Unused       string            `json:"unused,omitempty"`  // why the gateway does not use it for packets of pods
	// Transport is WebSocket while that carries the tunnel's packets; absent while UDP does.
	Transport records.Transport `json:"transport,omitempty"`
}

// known returns a duration that was measured.
func known(d time.Duration) *seconds.Duration {
	s := seconds.Duration(d)
	return &s
}

// measured is known for durations of which zero means that they were not measured.
func measured[D ~int64](d D) *seconds.Duration {
	if d == 0 {
		return nil
	}
	return known(time.Duration(d))
}

// Totals are the measurements of all gateways and tunnels of a peering together. Unknown ones are nil or zero.
type Totals struct {
	RTT       *seconds.Duration // the longest of tunnels that work
	ReportAge *seconds.Duration // of the oldest report; nil: no gateway has reported
	Loss      float64           // the largest
	RxBytes   int64
	TxBytes   int64
	Drifts    int64 // how often helpers restored kernels after external changes
}

// Totals returns the measurements of all gateways and tunnels together.
func (p Peering) Totals() (t Totals) {
	longest := func(to **seconds.Duration, d *seconds.Duration) {
		if d != nil && (*to == nil || *d > **to) {
			*to = d
		}
	}
	for _, g := range p.Gateways {
		longest(&t.ReportAge, g.ReportAge)
		t.Drifts += g.Drift.Times
		for _, one := range g.Tunnels {
			if one.State == health.Healthy {
				longest(&t.RTT, one.RTT)
			}
			t.Loss, t.RxBytes, t.TxBytes = max(t.Loss, one.Loss), t.RxBytes+one.RxBytes, t.TxBytes+one.TxBytes
		}
	}
	for _, n := range p.NodeStates() {
		t.Drifts += n.Drift.Times
	}
	return t
}

// NodeStates returns the state of each node at the first gateway that carries its packets, else at the first one.
func (p Peering) NodeStates() (states []NodeState) {
	for i, g := range p.Gateways {
		if i == 0 {
			states = slices.Clone(g.Nodes)
			continue
		}
		for j, n := range g.Nodes {
			if j < len(states) && n.Ready && !states[j].Ready {
				states[j] = n
			}
		}
	}
	return states
}
