package status

import (
	"encoding/json"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// Peering is the health of a peering, as one cluster sees it. Durations are -1 where nothing is known.
type Peering struct {
	Cluster string       `json:"cluster"` // whose side this is: its name at its peers
	Peer    string       `json:"peer"`
	Role    records.Role `json:"role,omitempty"`
	State   health.State `json:"state"`
	Reason  string       `json:"reason,omitempty"` // why it is not healthy
	// Endpoint is where the peer's gateway is heard, else where the client looks for it.
	Endpoint       string                 `json:"endpoint,omitempty"`
	HandshakeAge   time.Duration          `json:"handshakeAgeNanoseconds"` // when the report was made
	RTT            time.Duration          `json:"rttNanoseconds"`          // between the gateways
	Loss           float64                `json:"loss"`                    // of echoes between them, 0 to 1
	RxBytes        int64                  `json:"rxBytes"`
	TxBytes        int64                  `json:"txBytes"`
	NodesReady     int                    `json:"nodesReady"` // whose packets cross
	NodesTotal     int                    `json:"nodesTotal"` // that should take part
	Implementation records.Implementation `json:"implementation,omitempty"`
	Overlay        records.OverlayKind    `json:"overlay,omitempty"`
	ReportAge      time.Duration          `json:"reportAgeNanoseconds"`
	Pod            string                 `json:"pod,omitempty"` // of the gateway
	MTU            int                    `json:"mtu,omitempty"` // bytes, of packets between pods
	// bytes, of packets between the gateways, measured; 0: not known.
	PathMTU  int           `json:"pathMTU,omitempty"`
	Mappings []MappedRange `json:"mappings,omitempty"` // of the peer's ranges
	// Of this cluster's ranges at the peer; none: not known.
	OwnMappings []MappedRange `json:"ownMappings,omitempty"`
	// Hosts outside this cluster that the peer may reach.
	Exposed []ExposedHost `json:"exposed,omitempty"`
	// By the first gateway that carries their packets.
	Nodes []NodeState `json:"nodes,omitempty"`
	// Of several, what is said above is of the first that carries packets.
	Gateways []Gateway     `json:"gateways,omitempty"`
	Drift    records.Drift `json:"drift,omitzero"` // of the gateway's kernel
	// When the oldest key pair of this side's gateways was made; zero: that of one is not known.
	KeyCreated time.Time `json:"keyCreated,omitzero"`
	// Altered are objects that are missing, damaged or not as liqonet made them, each with how.
	Altered []string `json:"altered,omitempty"`
	// Warnings name what can lose packets of pods while those of nodes, by which paths are verified, cross.
	Warnings []string `json:"warnings,omitempty"`
}

// NodeState is one node's part in a peering.
type NodeState struct {
	Name  string        `json:"name"`
	Ready bool          `json:"ready"`                   // its packets cross
	RTT   time.Duration `json:"rttNanoseconds,omitzero"` // to the gateway and back
	// ProofRTT is the round trip to a node of the peer.
	ProofRTT time.Duration `json:"proofRTTNanoseconds,omitzero"`
	PathMTU  int           `json:"pathMTU,omitempty"` // bytes, of packets to the gateway, measured; 0: not known
	Drift    records.Drift `json:"drift,omitzero"`    // of the node's kernel
}

// unknownDuration stands for a duration that nobody has measured.
const unknownDuration = time.Duration(-1)

// MarshalJSON omits what is not known: a program could take -1 or 0 for a measurement.
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

// Drifts is how often helpers restored the kernels of the gateway and of all nodes after external changes.
func (s Peering) Drifts() int64 {
	times := s.Drift.Times
	for _, n := range s.Nodes {
		times += n.Drift.Times
	}
	return times
}
