package peering

import (
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/records"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// healthyStatus returns a report of noon with two nodes.
func healthyStatus() *records.Status {
	node := func(name string) records.NodeStatus {
		return records.NodeStatus{Name: name, LastEcho: noon.Add(-time.Second), LastProof: noon.Add(-2 * time.Second)}
	}
	return &records.Status{
		Version: 1, Time: noon, TunnelStatus: records.TunnelStatus{
			Session: records.Session{Since: noon.Add(-time.Minute), Usable: true}, LastEcho: noon.Add(-time.Second), Endpoint: netip.MustParseAddrPort("192.0.2.1:51840"),
		},
		Nodes: []records.NodeStatus{node("n1"), node("n2")},
	}
}

func TestVerification(t *testing.T) {
	later := func(d time.Duration) *records.Status {
		s := healthyStatus()
		s.Time, s.Session.Since, s.LastEcho = s.Time.Add(d), s.Session.Since.Add(d), s.LastEcho.Add(d)
		for i := range s.Nodes {
			s.Nodes[i].LastEcho, s.Nodes[i].LastProof = s.Nodes[i].LastEcho.Add(d), s.Nodes[i].LastProof.Add(d)
		}
		return s
	}
	nodes := &roster{}
	nodes.set([]discover.Node{{Name: "n1", Ready: true}, {Name: "n2", Ready: true}})
	t.Run("a first report needs no clock", func(t *testing.T) {
		w := verification{nodes: nodes}
		if w.check(nil, noon.Add(24*time.Hour)) == "" {
			t.Error("nothing is proof enough")
		}
		if missing := w.check(healthyStatus(), noon.Add(24*time.Hour)); missing != "" {
			t.Errorf("missing %q", missing)
		}
	})
	t.Run("an old report is none", func(t *testing.T) {
		w := verification{nodes: nodes}
		if w.check(healthyStatus(), noon.Add(time.Minute)) == "" {
			t.Error("taken for proof")
		}
		if missing := w.check(later(time.Second), noon.Add(time.Minute)); missing != "" {
			t.Errorf("missing %q", missing)
		}
	})
	t.Run("after a change old packets do not count", func(t *testing.T) {
		w := verification{nodes: nodes, renewed: true}
		for _, d := range []time.Duration{0, time.Second} {
			if w.check(later(d), noon.Add(d)) == "" {
				t.Errorf("report of %s later taken for proof", d)
			}
		}
		if missing := w.check(later(6*time.Second), noon.Add(6*time.Second)); missing != "" {
			t.Errorf("missing %q", missing)
		}
	})
}
