package network

import (
	"fmt"
	"strings"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/records"
)

// details writes a paragraph for each peering: role, addresses, MTU and encapsulation, then a line for each tunnel of a
// gateway.
func (o statusOptions) details(b *strings.Builder, all []status.Peering) error {
	for i, p := range all {
		if i > 0 {
			fmt.Fprintln(b)
		}
		ui.Writef(b, "%s: ", o.subject(p))
		fmt.Fprintln(b, o.paint(ui.VisibleCell(string(p.State))))
		for _, line := range detailsOf(p) {
			if line.text != "" {
				ui.Writef(b, "  %-11s %s\n", line.about, line.text)
			}
		}
		if err := o.tunnels(b, p); err != nil {
			return err
		}
	}
	return nil
}

// detail is a line about a peering; an empty one is left out.
type detail struct{ about, text string }

func detailsOf(p status.Peering) []detail {
	role := string(p.Role)
	if endpoints := strings.Join(endpointsOf(p), ", "); endpoints != "" {
		role += map[records.Role]string{records.Client: " of ", records.Server: ", client at "}[p.Role] + endpoints
	}
	mtu := size(p.MTU.Value)
	if mtu != "" {
		mtu += fmt.Sprintf(", %s: %s between gateways, %s to nodes", p.MTU.Source, ui.OrDash(size(p.MTU.Gateways)), ui.OrDash(size(p.MTU.Nodes)))
	}
	overlay := string(p.Overlay.Kind)
	if p.Overlay.Port != 0 {
		overlay += fmt.Sprintf(", UDP port %d", p.Overlay.Port)
	}
	drift := ""
	if t := p.Totals(); t.Drifts > 0 {
		drift = fmt.Sprintf("changes by other programs restored: %d", t.Drifts)
	}
	return []detail{
		{"role", role},
		{"reached at", ui.Joined(p.Addresses, status.AddressRange.String)},
		{"MTU", mtu},
		{"overlay", overlay},
		{"encryption", encryptionOf(p)},
		{"exposed", ui.Joined(p.Exposed, exposedCell)},
		{"drift", drift},
	}
}

// encryptionOf names what encrypts the packets between the clusters, for all gateways that have reported.
func encryptionOf(p status.Peering) string {
	var all []string
	for _, g := range p.Gateways {
		if g.WireGuard != "" {
			all = appendNew(all, driver(g.WireGuard))
		}
	}
	return strings.Join(all, ", ")
}

// endpointsOf returns the endpoints of the tunnels of a peering, each once.
func endpointsOf(p status.Peering) (all []string) {
	for _, g := range p.Gateways {
		for _, t := range g.Tunnels {
			if t.Endpoint != "" {
				all = appendNew(all, t.Endpoint)
			}
		}
	}
	return all
}

// gatewayTunnel is a tunnel of a gateway.
type gatewayTunnel struct {
	gateway status.Gateway
	tunnel  status.Tunnel // the zero value: the gateway has not reported yet
}

// tunnels writes a line for each tunnel of each gateway of a peering.
func (o statusOptions) tunnels(b *strings.Builder, p status.Peering) error {
	var rows []gatewayTunnel
	for _, g := range p.Gateways {
		for _, t := range g.Tunnels {
			rows = append(rows, gatewayTunnel{g, currentTunnel(g, t)})
		}
		if len(g.Tunnels) == 0 {
			rows = append(rows, gatewayTunnel{gateway: g})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return o.tunnelColumns().Print(b, ui.FormatWide, rows)
}

func (o statusOptions) tunnelColumns() ui.Columns[gatewayTunnel] {
	reported := func(cell func(status.Tunnel) string) func(gatewayTunnel) string {
		return func(t gatewayTunnel) string {
			if t.tunnel.PeerGateway == 0 {
				return ""
			}
			return cell(t.tunnel)
		}
	}
	return ui.Columns[gatewayTunnel]{
		{Title: "  GATEWAY", Cell: func(t gatewayTunnel) string { return fmt.Sprintf("  %d", t.gateway.Number) }},
		{Title: "STATE", Cell: func(t gatewayTunnel) string { return string(t.gateway.State) }, Paint: o.paint},
		{Title: "NODE", Cell: func(t gatewayTunnel) string { return t.gateway.Node }},
		{Title: "WIREGUARD", Cell: func(t gatewayTunnel) string { return string(t.gateway.WireGuard) }},
		{Title: "KEY", Cell: func(t gatewayTunnel) string { return keyAge(t.gateway.KeyCreated) }},
		{Title: "TO", Cell: reported(func(t status.Tunnel) string { return fmt.Sprint(t.PeerGateway, byTransport(t)) })},
		{Title: "STATE", Cell: reported(func(t status.Tunnel) string { return string(t.State) }), Paint: o.paint},
		{Title: "HANDSHAKE", Cell: reported(func(t status.Tunnel) string { return known(t.HandshakeAge, ui.Age) })},
		{Title: "RTT", Cell: reported(func(t status.Tunnel) string { return known(t.RTT, ui.RoundTrip) })},
		{Title: "LOSS", Cell: reported(func(t status.Tunnel) string { return ui.Percent(t.Loss) })},
	}
}
