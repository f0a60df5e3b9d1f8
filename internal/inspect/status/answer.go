package status

import (
	"encoding/json"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// Peering is the health of a peering, as one cluster observes it. Unknown durations are -1.
type Peering struct {
	Cluster string       `json:"cluster"` // the cluster that observes, by its name at its peers
	Peer    string       `json:"peer"`
	Role    records.Role `json:"role,omitempty"`
	State   health.State `json:"state"`
	Reason  string       `json:"reason,omitempty"` // if not healthy
	// Findings are what is wrong, from which state and reason follow.
	Findings []health.Finding `json:"findings,omitempty"`
	// Endpoint is the address from which the peer's gateway last sent, else the configured endpoint of the server.
	Endpoint       string                 `json:"endpoint,omitempty"`
	HandshakeAge   time.Duration          `json:"handshakeAgeNanoseconds"` // at the time of the report
	RTT            time.Duration          `json:"rttNanoseconds"`          // between the gateways
	Loss           float64                `json:"loss"`                    // of echoes between them, 0 to 1
	RxBytes        int64                  `json:"rxBytes"`
	TxBytes        int64                  `json:"txBytes"`
	NodesReady     int                    `json:"nodesReady"` // nodes whose packets cross
	NodesTotal     int                    `json:"nodesTotal"` // nodes that should take part
	Implementation records.Implementation `json:"implementation,omitempty"`
	Overlay        records.OverlayKind    `json:"overlay,omitempty"`
	ReportAge      time.Duration          `json:"reportAgeNanoseconds"`
	Pod            string                 `json:"pod,omitempty"` // of the gateway
	MTU            int                    `json:"mtu,omitempty"` // bytes, for packets between pods
	// PathMTU is the measured MTU between the gateways, in bytes; 0 if unknown.
	PathMTU  int           `json:"pathMTU,omitempty"`
	Mappings []MappedRange `json:"mappings,omitempty"` // of the peer's ranges
	// OwnMappings are the mappings of this cluster's ranges at the peer; empty if unknown.
	OwnMappings []MappedRange `json:"ownMappings,omitempty"`
	// Exposed are the hosts outside this cluster that the peer may reach.
	Exposed []ExposedHost `json:"exposed,omitempty"`
	// Nodes have the state of each node through the first gateway that carries its packets.
	Nodes []NodeState `json:"nodes,omitempty"`
	// Gateways are all gateways. The fields above describe the first of them that carries packets.
	Gateways []Gateway     `json:"gateways,omitempty"`
	Drift    records.Drift `json:"drift,omitzero"` // of the gateway's kernel
	// KeyCreated is the creation time of the oldest key pair of this cluster's gateways; zero if one of them is
	// unknown.
	KeyCreated time.Time `json:"keyCreated,omitzero"`
	// Altered lists objects that are missing, damaged or changed since liqonet created them, each with the difference.
	Altered []string `json:"altered,omitempty"`
	// Warnings name causes of lost pod packets that verification does not detect, because it sends packets of nodes.
	Warnings []string `json:"warnings,omitempty"`
}

// NodeState is the state of one node in a peering.
type NodeState struct {
	Name  string        `json:"name"`
	Ready bool          `json:"ready"`                   // its packets cross
	RTT   time.Duration `json:"rttNanoseconds,omitzero"` // to the gateway and back
	// ProofRTT is the round trip to a node of the peer.
	ProofRTT time.Duration `json:"proofRTTNanoseconds,omitzero"`
	PathMTU  int           `json:"pathMTU,omitempty"` // bytes, to the gateway, measured; 0 if unknown
	Drift    records.Drift `json:"drift,omitzero"`    // of the node's kernel
}

// unknownDuration is the value of a duration that was not measured.
const unknownDuration = time.Duration(-1)

// MarshalJSON omits unknown values: a program could take -1 or 0 for a measurement.
func (s Peering) MarshalJSON() ([]byte, error) {
	type plain Peering
	document := struct {
		plain

		HandshakeAge *time.Duration `json:"handshakeAgeNanoseconds,omitempty"`
		RTT          *time.Duration `json:"rttNanoseconds,omitempty"`
		ReportAge    *time.Duration `json:"reportAgeNanoseconds,omitempty"`
		Loss         *float64       `json:"loss,omitempty"`
		RxBytes      *int64         `json:"rxBytes,omitempty"`
		TxBytes      *int64         `json:"txBytes,omitempty"`
	}{plain: plain(s), HandshakeAge: known(s.HandshakeAge), RTT: known(s.RTT), ReportAge: known(s.ReportAge)}
	if document.ReportAge != nil {
		document.Loss, document.RxBytes, document.TxBytes = &s.Loss, &s.RxBytes, &s.TxBytes
	}
	return json.Marshal(document)
}

func known(d time.Duration) *time.Duration {
	if d < 0 {
		return nil
	}
	return &d
}

// Drifts returns how often helpers restored the kernels of the gateway and of all nodes after external changes.
func (s Peering) Drifts() int64 {
	times := s.Drift.Times
	for _, n := range s.Nodes {
		times += n.Drift.Times
	}
	return times
}
