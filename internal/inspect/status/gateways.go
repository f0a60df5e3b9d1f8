package status

import (
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// Gateway is the health of one gateway of a peering. Unknown values are omitted.
type Gateway struct {
	Number     int            `json:"number"`
	State      health.State   `json:"state"`
	Reason     string         `json:"reason,omitempty"` // if not healthy
	Pod        string         `json:"pod,omitempty"`
	Node       string         `json:"node,omitempty"`
	ReportAge  *time.Duration `json:"reportAgeNanoseconds,omitempty"`
	KeyCreated time.Time      `json:"keyCreated,omitzero"` // creation time of its key pair
	NodesReady int            `json:"nodesReady"`          // nodes whose packets cross through this gateway
	Nodes      []NodeState    `json:"nodes,omitempty"`
	Tunnels    []Tunnel       `json:"tunnels,omitempty"`
}

// Tunnel is the health of a tunnel of a gateway. Unknown values are omitted.
type Tunnel struct {
	Gateway      int            `json:"gateway"` // number of the peer's gateway
	State        health.State   `json:"state"`
	Reason       string         `json:"reason,omitempty"` // if not healthy
	Endpoint     string         `json:"endpoint,omitempty"`
	HandshakeAge *time.Duration `json:"handshakeAgeNanoseconds,omitempty"` // at the time of the report
	RTT          *time.Duration `json:"rttNanoseconds,omitempty"`
	Loss         float64        `json:"loss"` // of echoes, 0 to 1
	RxBytes      int64          `json:"rxBytes"`
	TxBytes      int64          `json:"txBytes"`
	PathMTU      int            `json:"pathMTU,omitempty"` // bytes, measured; 0 if unknown
	Unused       string         `json:"unused,omitempty"`  // why the gateway does not use it for packets of pods
}

// describeGateway joins a desired gateway with its observation.
func describeGateway(number int, g records.LocalGateway, o health.Observation) Gateway {
	v := Gateway{Number: number, Node: o.GatewayNode, NodesReady: health.NodesReady(o.Status, o.Nodes)}
	v.State, v.Reason = health.Judge(o)
	for _, name := range o.Nodes {
		v.Nodes = append(v.Nodes, nodeState(o.Status, name))
	}
	s := o.Status
	if s == nil {
		return v
	}
	v.Pod, v.KeyCreated, v.ReportAge = s.Pod, s.KeyCreated, known(max(o.Age, 0))
	for i, t := range s.AllTunnels() {
		one := Tunnel{Gateway: i + 1, Loss: t.Loss, RxBytes: t.RxBytes, TxBytes: t.TxBytes, PathMTU: t.Path.MTU, Unused: t.Unused}
		one.State, one.Reason = health.Tunnel(s, t)
		if i < len(g.Tunnels) && len(g.Tunnels[i].Endpoints) > 0 {
			one.Endpoint = g.Tunnels[i].Endpoints[0]
		}
		if t.Endpoint.IsValid() {
			one.Endpoint = t.Endpoint.String()
		}
		if !t.LastHandshake.IsZero() {
			one.HandshakeAge = known(s.Time.Sub(t.LastHandshake))
		}
		if !t.LastEcho.IsZero() {
			one.RTT = known(time.Duration(t.RTT))
		}
		v.Tunnels = append(v.Tunnels, one)
	}
	return v
}

// leading returns the index of the first observation whose gateway carries packets; else 0.
func leading(all []health.Observation) int {
	for i, o := range all {
		if state, _ := health.Judge(o); state == health.Healthy || state == health.Degraded {
			return i
		}
	}
	return 0
}
