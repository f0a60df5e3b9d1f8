package network

import (
	"fmt"
	"io"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inspect/status"
)

// gatewaysTable writes the gateways of peerings with several gateways in either cluster, a line for each tunnel. both
// adds the cluster.
func gatewaysTable(w io.Writer, all []status.Peering, both bool) error {
	rows := [][]string{{"PEER", "GATEWAY", "STATE", "POD", "NODE", "NODES", "KEY", "TO GATEWAY", "ENDPOINT", "HANDSHAKE", "RTT", "LOSS", "RX/TX", "PATH"}}
	for _, p := range all {
		subject := p.Peer
		if both {
			subject = p.Cluster + " to " + p.Peer
		}
		for _, g := range p.Gateways {
			if len(p.Gateways) == 1 && len(g.Tunnels) < 2 {
				continue
			}
			gateway := []string{subject, fmt.Sprint(g.Number), string(g.State), ui.OrDash(g.Pod), ui.OrDash(g.Node), fmt.Sprintf("%d/%d", g.NodesReady, p.Nodes.Total), keyAge(g.KeyCreated)}
			if len(g.Tunnels) == 0 { // it has not reported yet
				g.Tunnels = []status.Tunnel{{}}
			}
			for _, t := range g.Tunnels {
				rows = append(rows, append(gateway[:len(gateway):len(gateway)], tunnelCells(t)...))
			}
		}
	}
	if len(rows) == 1 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return ui.Table(w, rows)
}

// tunnelCells returns the cells of a tunnel; one without a number is not known.
func tunnelCells(t status.Tunnel) []string {
	if t.PeerGateway == 0 {
		return []string{ui.Unknown, ui.Unknown, ui.Unknown, ui.Unknown, ui.Unknown, ui.Unknown, ui.Unknown}
	}
	return []string{
		fmt.Sprint(t.PeerGateway), ui.OrDash(t.Endpoint), known(t.HandshakeAge, ui.Age), known(t.RTT, ui.RoundTrip), ui.Percent(t.Loss),
		ui.ByteCount(t.RxBytes) + "/" + ui.ByteCount(t.TxBytes), size(t.PathMTU),
	}
}
