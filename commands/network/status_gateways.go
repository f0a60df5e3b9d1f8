package network

import (
	"fmt"
	"io"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inspect/status"
)

// gatewayTunnel is a tunnel of a gateway of a peering.
type gatewayTunnel struct {
	peering status.Peering
	gateway status.Gateway
	tunnel  *status.Tunnel // nil: the gateway has not reported yet
}

// gateways writes the gateways of peerings with several gateways in either cluster, a line for each tunnel.
func (o statusOptions) gateways(w io.Writer, all []status.Peering) error {
	var rows []gatewayTunnel
	for _, p := range all {
		for _, g := range p.Gateways {
			if len(p.Gateways) == 1 && len(g.Tunnels) < 2 {
				continue
			}
			for _, t := range g.Tunnels {
				rows = append(rows, gatewayTunnel{p, g, &t})
			}
			if len(g.Tunnels) == 0 {
				rows = append(rows, gatewayTunnel{p, g, nil})
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return o.gatewayColumns().Print(w, o.output, rows)
}

func (o statusOptions) gatewayColumns() ui.Columns[gatewayTunnel] {
	reported := func(cell func(status.Tunnel) string) func(gatewayTunnel) string {
		return func(t gatewayTunnel) string {
			if t.tunnel == nil {
				return ""
			}
			return cell(*t.tunnel)
		}
	}
	return ui.Columns[gatewayTunnel]{
		{Title: "PEER", Cell: func(t gatewayTunnel) string { return o.subject(t.peering) }},
		{Title: "GATEWAY", Cell: func(t gatewayTunnel) string { return fmt.Sprint(t.gateway.Number) }},
		{Title: "STATE", Cell: func(t gatewayTunnel) string { return string(t.gateway.State) }},
		{Title: "POD", Cell: func(t gatewayTunnel) string { return t.gateway.Pod }},
		{Title: "NODE", Cell: func(t gatewayTunnel) string { return t.gateway.Node }},
		{Title: "NODES", Cell: func(t gatewayTunnel) string { return fmt.Sprintf("%d/%d", t.gateway.NodesReady, t.peering.Nodes.Total) }},
		{Title: "KEY", Cell: func(t gatewayTunnel) string { return keyAge(t.gateway.KeyCreated) }},
		{Title: "TO GATEWAY", Cell: reported(func(t status.Tunnel) string { return fmt.Sprint(t.PeerGateway) })},
		{Title: "ENDPOINT", Cell: reported(func(t status.Tunnel) string { return t.Endpoint })},
		{Title: "HANDSHAKE", Cell: reported(func(t status.Tunnel) string { return known(t.HandshakeAge, ui.Age) })},
		{Title: "RTT", Cell: reported(func(t status.Tunnel) string { return known(t.RTT, ui.RoundTrip) })},
		{Title: "LOSS", Cell: reported(func(t status.Tunnel) string { return ui.Percent(t.Loss) })},
		{Title: "RX/TX", Cell: reported(func(t status.Tunnel) string { return ui.ByteCount(t.RxBytes) + "/" + ui.ByteCount(t.TxBytes) })},
		{Title: "PATH", Cell: reported(func(t status.Tunnel) string { return size(t.PathMTU) })},
	}
}
