package status

import (
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// describeGateway joins a desired gateway with its observation and what was found by it.
func describeGateway(number int, g records.LocalGateway, o health.Observation, found []health.Finding) Gateway {
	v := Gateway{Number: number, Node: o.GatewayNode, State: health.StateOf(found), Reason: health.Reason(found, 1)}
	v.Nodes = make([]NodeState, 0, len(o.Nodes))
	for name, n := range health.Nodes(o.Status, o.Nodes) {
		ready := health.NodeReady(o.Status, *n)
		v.Nodes = append(v.Nodes, NodeState{Name: name, Ready: ready, RTT: measured(n.RTT), ProofRTT: measured(n.ProofRTT), PathMTU: n.Path.MTU, Drift: n.Drift})
		if ready {
			v.NodesReady++
		}
	}
	s := o.Status
	if s == nil {
		return v
	}
	v.Pod, v.WireGuard, v.KeyCreated, v.ReportAge, v.Drift = s.Pod, s.Implementation, s.KeyCreated, known(max(o.Age, 0)), s.Drift
	for i, t := range s.AllTunnels() {
		one := Tunnel{PeerGateway: i + 1, Loss: t.Loss, RxBytes: t.RxBytes, TxBytes: t.TxBytes, PathMTU: t.Path.MTU, Unused: t.Unused, Transport: t.Transport}
		one.State, one.Reason = health.Tunnel(s, t)
		if i < len(g.Tunnels) && len(g.Tunnels[i].Endpoints) > 0 {
			one.Endpoint = g.Tunnels[i].Endpoints[0]
		}
		if t.Endpoint.IsValid() {
			one.Endpoint = t.Endpoint.String()
		}
		if !t.Session.Since.IsZero() {
			one.HandshakeAge = known(s.Time.Sub(t.Session.Since))
		}
		if !t.LastEcho.IsZero() {
			one.RTT = known(time.Duration(t.RTT))
		}
		v.Tunnels = append(v.Tunnels, one)
	}
	return v
}
