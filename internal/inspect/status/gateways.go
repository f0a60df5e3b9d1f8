package status

import (
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// Gateway is the health of one gateway of a peering. What is not known is left out.
type Gateway struct {
	Number     int            `json:"number"`
	State      health.State   `json:"state"`
	Reason     string         `json:"reason,omitempty"` // why it is not healthy
	Pod        string         `json:"pod,omitempty"`
	Node       string         `json:"node,omitempty"`
	ReportAge  *time.Duration `json:"reportAgeNanoseconds,omitempty"`
	KeyCreated time.Time      `json:"keyCreated,omitzero"` // when its key pair was made
	NodesReady int            `json:"nodesReady"`          // whose packets cross by it
	Nodes      []NodeState    `json:"nodes,omitempty"`
	Tunnels    []Tunnel       `json:"tunnels,omitempty"`
}

// Tunnel is the health of a tunnel of a gateway. What is not known is left out.
type Tunnel struct {
	Gateway      int            `json:"gateway"` // number of the peer's
	State        health.State   `json:"state"`
	Reason       string         `json:"reason,omitempty"` // why it is not healthy
	Endpoint     string         `json:"endpoint,omitempty"`
	HandshakeAge *time.Duration `json:"handshakeAgeNanoseconds,omitempty"` // when the report was made
	RTT          *time.Duration `json:"rttNanoseconds,omitempty"`
	Loss         float64        `json:"loss"` // of echoes, 0 to 1
	RxBytes      int64          `json:"rxBytes"`
	TxBytes      int64          `json:"txBytes"`
	PathMTU      int            `json:"pathMTU,omitempty"` // bytes, measured; 0: not known
	Unused       string         `json:"unused,omitempty"`  // why the gateway sends no packets of pods by it
}

// describeGateway joins what a gateway should be with what is observed of it.
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

// leading is the first of several observations whose gateway carries packets; else the first.
func leading(all []health.Observation) int {
	for i, o := range all {
		if state, _ := health.Judge(o); state == health.Healthy || state == health.Degraded {
			return i
		}
	}
	return 0
}
