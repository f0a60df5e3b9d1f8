package peering

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// healthyStatus is a report of noon with two nodes.
func healthyStatus() *records.Status {
	node := func(name string) records.NodeStatus {
		return records.NodeStatus{Name: name, LastEcho: noon.Add(-time.Second), LastProof: noon.Add(-5 * time.Second)}
	}
	return &records.Status{
		Version: 1, Time: noon, LastHandshake: noon.Add(-time.Minute), LastEcho: noon.Add(-time.Second),
		Endpoint: netip.MustParseAddrPort("192.0.2.1:51840"), Nodes: []records.NodeStatus{node("n1"), node("n2")},
	}
}

func TestJudge(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Observation)
		want   State
		reason string
	}{
		{"all is well", func(*Observation) {}, Healthy, ""},
		{"report at the limit", func(o *Observation) { o.Now = noon.Add(29 * time.Second) }, Healthy, ""},
		{"clock ahead of ours", func(o *Observation) { o.Now = noon.Add(-time.Hour) }, Healthy, ""},
		{"a node of no concern", func(o *Observation) { o.Nodes = []string{"n1"}; o.Status.Nodes[1].LastProof = time.Time{} }, Healthy, ""},
		{"never reported", func(o *Observation) { o.Status = nil }, Connecting, "has not reported"},
		{"cannot start", func(o *Observation) { o.Status, o.Problem = nil, "no image" }, Down, "no image"},
		{"old report", func(o *Observation) { o.Now = noon.Add(2 * time.Minute) }, Unknown, "2m0s old"},
		{"old report of a pod that is gone", func(o *Observation) { o.Now, o.Problem = noon.Add(time.Minute), "evicted" }, Down, "evicted; the last report"},
		{"no handshake", func(o *Observation) { o.Status.LastHandshake = time.Time{} }, Connecting, "no handshake yet with 192.0.2.1:51840"},
		{"no handshake for a cause", func(o *Observation) {
			o.Status.LastHandshake, o.Status.Failed = time.Time{}, []string{"no route"}
		}, Connecting, "no route"},
		{"old handshake", func(o *Observation) { o.Status.LastHandshake = noon.Add(-180 * time.Second) }, Down, "last handshake with 192.0.2.1:51840 was 3m0s ago"},
		{"no echo ever", func(o *Observation) { o.Status.LastEcho = time.Time{} }, Connecting, "no echo"},
		{"old echo", func(o *Observation) { o.Status.LastEcho = noon.Add(-5 * time.Second) }, Down, "answered last 5s ago"},
		{"half lost", func(o *Observation) { o.Status.Loss = 0.5 }, Degraded, "50 %"},
		{"less than half lost", func(o *Observation) { o.Status.Loss = 0.49 }, Healthy, ""},
		{"a failure of the gateway's", func(o *Observation) { o.Status.Failed = []string{"nft: busy"} }, Degraded, "nft: busy"},
		{"a node is silent", func(o *Observation) { o.Status.Nodes[1].LastEcho = noon.Add(-10 * time.Second) }, Degraded, "gateway and node n2"},
		{"a node is not known to the gateway", func(o *Observation) { o.Nodes = append(o.Nodes, "n3") }, Degraded, "node n3"},
		{"a node is not answered", func(o *Observation) { o.Status.Nodes[0].LastProof = noon.Add(-90 * time.Second) }, Degraded, "peer to node n1"},
		{"no node is answered", func(o *Observation) {
			o.Status.Nodes[0].LastProof, o.Status.Nodes[1].LastProof = time.Time{}, time.Time{}
		}, Down, "node n1, n2"},
		{"no nodes", func(o *Observation) { o.Nodes = nil }, Degraded, "no node is Ready"},
		{"paths that just carry it", func(o *Observation) { o.MTU, o.Status.Path.MTU, o.Status.Nodes[0].Path.MTU = 1420, 1480, 1470 }, Healthy, ""},
		{"a narrow path between gateways", func(o *Observation) { o.MTU, o.Status.Path.MTU = 1420, 1479 }, Degraded, "between the gateways carries 1479, which is enough for 1399"},
		{"a narrow path of a node", func(o *Observation) { o.MTU, o.Status.Nodes[1].Path.MTU = 1420, 1469 }, Degraded, "node n2 to the gateway 1469, enough for 1419"},
		{"a narrow path of no concern", func(o *Observation) { o.Nodes, o.MTU, o.Status.Nodes[1].Path.MTU = []string{"n1"}, 1420, 1400 }, Healthy, ""},
		{"a narrow path on which packets are lost", func(o *Observation) {
			o.MTU, o.Status.Path.MTU = 1420, 1400
			o.Status.Nodes[0].LastProof, o.Status.Nodes[1].LastProof = time.Time{}, time.Time{}
		}, Down, "do not fit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Observation{Status: healthyStatus(), Nodes: []string{"n1", "n2"}, Now: noon}
			tt.change(&o)
			state, reason := Judge(o)
			if state != tt.want || !strings.Contains(reason, tt.reason) || (reason == "") != (state == Healthy) {
				t.Errorf("%s, %q; want %s, %q", state, reason, tt.want, tt.reason)
			}
		})
	}
}

func TestWitness(t *testing.T) {
	later := func(d time.Duration) *records.Status {
		s := healthyStatus()
		s.Time, s.LastHandshake, s.LastEcho = s.Time.Add(d), s.LastHandshake.Add(d), s.LastEcho.Add(d)
		for i := range s.Nodes {
			s.Nodes[i].LastEcho, s.Nodes[i].LastProof = s.Nodes[i].LastEcho.Add(d), s.Nodes[i].LastProof.Add(d)
		}
		return s
	}
	nodes := []string{"n1", "n2"}
	t.Run("a first report needs no clock", func(t *testing.T) {
		w := witness{nodes: nodes}
		if w.look(nil, noon.Add(24*time.Hour)) == "" {
			t.Error("nothing is proof enough")
		}
		if missing := w.look(healthyStatus(), noon.Add(24*time.Hour)); missing != "" {
			t.Errorf("missing %q", missing)
		}
	})
	t.Run("an old report is none", func(t *testing.T) {
		w := witness{nodes: nodes}
		if w.look(healthyStatus(), noon.Add(time.Minute)) == "" {
			t.Error("taken for proof")
		}
		if missing := w.look(later(time.Second), noon.Add(time.Minute)); missing != "" {
			t.Errorf("missing %q", missing)
		}
	})
	t.Run("after a change old packets do not count", func(t *testing.T) {
		w := witness{nodes: nodes, renewed: true}
		for _, d := range []time.Duration{0, 3 * time.Second} {
			if w.look(later(d), noon.Add(d)) == "" {
				t.Errorf("report of %s later taken for proof", d)
			}
		}
		if missing := w.look(later(6*time.Second), noon.Add(6*time.Second)); missing != "" {
			t.Errorf("missing %q", missing)
		}
	})
}
