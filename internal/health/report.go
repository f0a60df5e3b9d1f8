package health

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/records"
)

// Same reports whether two reports of a gateway result in the same findings, and differ only in counters and ages.
func Same(a, b records.Status) bool {
	return slices.Equal(found(&a), found(&b)) && slices.Equal(contents(&a), contents(&b))
}

// found has the findings of a report, without ages, shares, and the endpoint of a handshake: each attempt has another
// one.
func found(s *records.Status) []Finding {
	names := make([]string, len(s.Nodes))
	for i, n := range s.Nodes {
		names[i] = n.Name
	}
	findings := Gateway(Observation{Status: s, Nodes: names})
	for i, f := range findings {
		if f.Figures != (Figures{}) || f.Code == tunnelHandshake || f.Code == tunnelEcho {
			findings[i].Figures, findings[i].Text = Figures{}, ""
		}
	}
	return findings
}

// contents has what a report says besides, without counters and ages. The endpoint of a tunnel that was never answered,
// sizes before a first answer, and why a tunnel is not used can wait.
func contents(s *records.Status) []string {
	c := append([]string{s.Pod, string(s.Implementation), string(s.Overlay)}, s.Failed...)
	for _, e := range s.Exposed {
		c = append(c, e.Host.String(), e.Address.String())
	}
	for _, n := range s.Nodes {
		if s.LastEcho.IsZero() {
			n.Path = records.PathSize{}
		}
		c = append(c, fmt.Sprint(n.Name, n.Path, n.Unused))
	}
	for _, t := range slices.Concat(s.Tunnels, []records.TunnelStatus{s.TunnelStatus}) {
		if t.LastEcho.IsZero() {
			t.Endpoint = netip.AddrPort{}
		}
		c = append(c, fmt.Sprint(t.Endpoint, t.Session.Since.IsZero(), t.Path, t.Unused == "", t.Transport, t.Congestion))
	}
	return c
}

// Loss returns the share of lost echoes to report, given the number of missing ones and the time since the last of them
// was sent.
func Loss(missing int, share float64, clean time.Duration) float64 {
	if missing < LossLeast || clean >= LossClean {
		return 0
	}
	return share
}
