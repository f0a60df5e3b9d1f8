package health

import (
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/seconds"
)

// The overhead of encapsulation, in bytes.
const (
	OverlayOverhead = 50 // IP 20, UDP 8, VXLAN or Geneve 8, Ethernet 14
	TunnelOverhead  = 80 // IPv6 40, UDP 8, WireGuard 32; over IPv4 it is 20 less
	// tunnelOverheadLeast is TunnelOverhead if the tunnel uses IPv4 on its whole path.
	tunnelOverheadLeast = TunnelOverhead - 20
)

// Codes of findings about tunnels, of which one leads to the other.
const (
	tunnelHandshake Code = "LQ-TUNNEL-HANDSHAKE"
	tunnelEcho      Code = "LQ-TUNNEL-ECHO"
)

// underTunnel are the checks of what a tunnel depends on.
var underTunnel = []string{"LQ-GATEWAY-RUNNING", "LQ-GATEWAY-SERVICE", "LQ-GATEWAY-REPORT", "LQ-GATEWAY-APPLIED"}

var tunnelKinds = []Kind{
	{
		Code:  tunnelHandshake,
		What:  "Every tunnel has WireGuard session keys: a handshake within three minutes.",
		Needs: append(slices.Clone(underTunnel), "LQ-TUNNEL-KEYS", "LQ-TUNNEL-ENDPOINT"),
		Cause: "A firewall between the clusters drops the UDP packets of the endpoint, or its address cannot be reached from the client.",
		Fix: "Allow UDP from the nodes of the client cluster to the endpoint that is named, and the answers (docs/requirements.md, Ports). A security group of the server's nodes must admit its NodePort. Where UDP cannot be allowed: " +
			Update + " with " + records.WebSocketFlags + "; with --transport websocket as well, no Service of UDP is needed (docs/connect.md, WebSocket).",
		cutOff: levelDown,
		find:   func(g *gateway) []Finding { return With(g.broken, tunnelHandshake) },
	},
	{
		Code:   tunnelEcho,
		What:   "The gateways answer each other's echoes by every tunnel, five a second.",
		Needs:  append(slices.Clone(underTunnel), "LQ-TUNNEL-HANDSHAKE"),
		Cause:  "The network between the clusters has dropped the tunnel's UDP packets for some seconds: a firewall, a changed address, or a NAT without state.",
		Fix:    "Check the network between the endpoint that is named and the client; status shows when packets cross again.",
		cutOff: levelDown,
		find: func(g *gateway) []Finding {
			findings := slices.Clone(g.broken)
			for i, f := range findings {
				if f.Code == tunnelHandshake { // without session keys there are no echoes
					findings[i].Level = Note
				}
			}
			return findings
		},
	},
	{
		Code:  "LQ-TUNNEL-LOSS",
		What:  "Less than 2 % of the echoes between the gateways are lost.",
		Needs: []string{"LQ-TUNNEL-ECHO"},
		Cause: "The network between the clusters is congested or limits UDP.",
		Fix:   "Measure the underlay between the gateways' nodes; ask the provider about limits of UDP.",
		find: func(g *gateway) (findings []Finding) {
			all := g.Status.AllTunnels()
			for i, t := range all {
				if works := tunnel(g.Status, t) == (Finding{}); works && t.Loss >= MuchLoss {
					findings = append(findings, Finding{
						Level: levelDegraded, Subject: Subject{Tunnel: i + 1}, Figures: Figures{Loss: t.Loss}, several: len(all) > 1,
						Text: fmt.Sprintf("%.*f %% of the echoes between the gateways are lost", decimals(t.Loss), t.Loss*100),
					})
				}
			}
			return findings
		},
	},
	{
		Code:  "LQ-TUNNEL-MTU",
		What:  "Full-size packets, with WireGuard's encapsulation, fit the path between the gateways.",
		Needs: []string{"LQ-TUNNEL-ECHO"},
		Cause: "The network between the clusters carries smaller packets than when the peering was made.",
		Fix:   Update + " adapts the MTU.",
		find: func(g *gateway) []Finding {
			size := NarrowTunnel(g.Status, g.MTU)
			if size == 0 {
				return nil
			}
			return []Finding{{
				Level: levelDegraded, Figures: Figures{Size: size, Needed: g.MTU},
				Text: fmt.Sprintf("packets of %d bytes do not fit the path between the gateways, which carries %d: enough for %d", g.MTU, size, size-TunnelOverhead),
			}}
		},
	},
	{
		Code:  "LQ-TUNNEL-ENCRYPTED",
		What:  "The tunnels are encrypted.",
		Needs: []string{"LQ-GATEWAY-REPORT"},
		Cause: "The peering was connected with --tunnel plain --unencrypted: whoever is on the line between the clusters reads its packets and can send others.",
		Fix:   Update + " --tunnel wireguard",
		find: func(g *gateway) []Finding {
			if g.Status.Implementation != records.Unencrypted {
				return nil
			}
			return []Finding{{Level: Warning, Text: "the tunnels are not encrypted"}}
		},
	},
	{
		Code:  "LQ-TUNNEL-UDP",
		What:  "WireGuard's packets go by UDP, unless the transport is set to websocket.",
		Needs: []string{"LQ-TUNNEL-ENDPOINT"},
		Cause: "A firewall between the clusters drops UDP. Packets go by WebSocket, which is TCP: they wait for each other where one is lost.",
		Fix:   "Allow UDP to the endpoint that is named (docs/requirements.md, Ports): the gateway returns to it by itself. Where UDP cannot be allowed: " + Update + " --transport websocket, which removes the Service of UDP",
		find: func(g *gateway) []Finding {
			return warnings(g.Status, "UDP does not get through, packets go by WebSocket", func(t records.TunnelStatus) bool {
				return g.Transport == records.AutoTransport && t.Transport == records.WebSocket
			})
		},
	},
	{
		Code:  "LQ-TUNNEL-CONGESTION",
		What:  "WebSocket connections have congestion control BBR.",
		Needs: []string{"LQ-GATEWAY-REPORT"},
		Cause: "The kernel of the gateway's node has no BBR, or does not load its module. Other congestion controls stop for seconds where one packet in a hundred is lost.",
		Fix:   "Load the module on the nodes of gateways (modprobe tcp_bbr), also at boot: WebSocket has BBR from the next connection on. Delete the pod of a gateway to make one.",
		find: func(g *gateway) []Finding {
			return warnings(g.Status, "WebSocket sends without BBR", func(t records.TunnelStatus) bool {
				return t.Congestion != "" && t.Congestion != "bbr"
			})
		},
	},
}

// warnings returns a warning about each tunnel to which it applies.
func warnings(s *records.Status, text string, applies func(records.TunnelStatus) bool) (findings []Finding) {
	all := s.AllTunnels()
	for i, t := range all {
		if applies(t) {
			findings = append(findings, Finding{Level: Warning, Subject: Subject{Tunnel: i + 1}, several: len(all) > 1, Text: text})
		}
	}
	return findings
}

// TunnelMissing returns the reason why the gateways do not reach each other; "" if they do. A nil report means none
// yet.
func TunnelMissing(s *records.Status) string {
	if s == nil {
		_, reason := Judge(Observation{})
		return reason
	}
	_, reason := Tunnel(s, s.TunnelStatus)
	return reason
}

// Tunnel returns the state of one tunnel in a report and, unless it is healthy, the reason.
func Tunnel(s *records.Status, t records.TunnelStatus) (State, string) {
	f := tunnel(s, t)
	return states[f.Level], f.Text
}

// tunnel evaluates the path between two gateways; zero if it works. Answers take precedence over handshakes, because a
// renewal of the tunnel resets the latter.
func tunnel(s *records.Status, t records.TunnelStatus) Finding {
	with := ""
	if t.Endpoint.IsValid() {
		with = " with " + t.Endpoint.String()
	}
	f := Finding{Code: tunnelEcho, Level: levelConnecting}
	if !t.Session.Usable {
		f.Code = tunnelHandshake
	}
	switch echo, handshake := s.Time.Sub(t.LastEcho), s.Time.Sub(t.Session.Since); {
	case !t.LastEcho.IsZero() && echo < EchoSilence:
		return Finding{}
	case !t.LastEcho.IsZero():
		f.Level, f.Figures.Age, f.Text = levelDown, seconds.Duration(echo), fmt.Sprintf("the peer's gateway answered last %s ago", round(echo))
	case t.Session.Since.IsZero() && s.Implementation == records.Unencrypted:
		f.Text = "no packet yet" + with
	case t.Session.Since.IsZero():
		f.Text = "no handshake yet" + with
	case f.Code == tunnelHandshake:
		f.Level, f.Figures.Age, f.Text = levelDown, seconds.Duration(handshake), fmt.Sprintf("the last handshake%s was %s ago", with, round(handshake))
	default:
		f.Text = "the peer's gateway has answered no echo yet"
	}
	return f
}

// broken returns a finding about each tunnel of a gateway that does not work. If none works, cut is set, and there is
// one finding about all.
func broken(s *records.Status) (findings []Finding, cut bool) {
	all := s.AllTunnels()
	if none := tunnel(s, s.TunnelStatus); none.Level > Note {
		if len(all) == 1 {
			none.Subject.Tunnel = 1
		}
		return []Finding{none}, true
	}
	for i, t := range all {
		if f := tunnel(s, t); f.Level > Note {
			f.Level, f.Subject.Tunnel, f.several = levelDegraded, i+1, len(all) > 1
			findings = append(findings, f)
		}
	}
	return findings, false
}

func decimals(loss float64) int {
	if loss < 0.1 {
		return 1
	}
	return 0
}

// NarrowTunnel returns the path MTU between the gateways, in bytes, if packets of size mtu do not fit; 0 if they do, if
// nothing was measured, or if mtu is 0.
func NarrowTunnel(s *records.Status, mtu int) int {
	size := 0
	for _, t := range s.AllTunnels() {
		if t.Path.MTU > 0 && (size == 0 || t.Path.MTU < size) {
			size = t.Path.MTU
		}
	}
	if mtu > 0 && mtu+tunnelOverheadLeast > size {
		return size
	}
	return 0
}
