package health

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// session returns a usable session of an age.
func session(age time.Duration) records.Session {
	return records.Session{Since: ago(age), Usable: true}
}

// healthyStatus returns a report of 12:00 with two nodes.
func healthyStatus() *records.Status {
	node := func(name string) records.NodeStatus {
		return records.NodeStatus{Name: name, LastEcho: ago(time.Second), LastProof: ago(2 * time.Second)}
	}
	return &records.Status{
		Version: records.SchemaVersion, Time: noon, Pod: "gateway-b-x", TunnelStatus: records.TunnelStatus{
			Session: session(time.Minute), LastEcho: ago(time.Second), Endpoint: netip.MustParseAddrPort("192.0.2.1:51840"),
		},
		Nodes: []records.NodeStatus{node("n1"), node("n2")},
	}
}

func TestJudge(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Observation)
		want   State
		reason string
	}{
		{"no fault", func(*Observation) {}, Healthy, ""},
		{"report at the limit", func(o *Observation) { o.Age = ReportEvery + reportDelay - 1 }, Healthy, ""},
		{"clock a little ahead of ours", func(o *Observation) { o.Age = -ReportEvery }, Healthy, ""},
		{"clock far ahead of ours, and no other report seen", func(o *Observation) { o.Age = -time.Hour }, Unknown, "from 1h0m0s in the future"},
		{"a node that does not take part", func(o *Observation) { o.Nodes = []string{"n1"}; o.Status.Nodes[1].LastProof = time.Time{} }, Healthy, ""},
		{"never reported", func(o *Observation) { o.Status = nil }, Connecting, "has not reported"},
		{"cannot start", func(o *Observation) { o.Status, o.Problem = nil, "no image" }, Down, "no image"},
		{"late report of a gateway without witnesses", func(o *Observation) { o.Every, o.Age = LoneReportEvery, LoneReportEvery+reportDelay }, Unknown, "5s old"},
		{"a report that claims to be the last for years", func(o *Observation) { o.Every, o.Age = 1<<62, time.Hour }, Unknown, "1h0m0s old"},
		{"a report that claims to be followed before it was made", func(o *Observation) { o.Every = -time.Hour }, Healthy, ""},
		{"old report", func(o *Observation) { o.Age = 2 * time.Minute }, Unknown, "2m0s old"},
		{"old report of a pod that is gone", func(o *Observation) { o.Age, o.Problem = time.Minute, "evicted" }, Down, "evicted; the gateway's last report"},
		{"no handshake", func(o *Observation) { o.Status.Session, o.Status.LastEcho = records.Session{}, time.Time{} }, Connecting, "no handshake yet with 192.0.2.1:51840"},
		{"no handshake for a cause", func(o *Observation) {
			o.Status.Session, o.Status.LastEcho, o.Status.Failed = records.Session{}, time.Time{}, []string{"no route"}
		}, Connecting, "no route"},
		{"a renewed tunnel without a handshake since", func(o *Observation) {
			o.Status.Session, o.Status.LastEcho = records.Session{}, ago(8*time.Second)
		}, Down, "answered last 8s ago"},
		{"a renewed tunnel whose last echo is fresh", func(o *Observation) { o.Status.Session = records.Session{} }, Healthy, ""},
		{"old handshake", func(o *Observation) {
			o.Status.Session, o.Status.LastEcho = records.Session{Since: ago(3 * time.Minute)}, time.Time{}
		}, Down, "last handshake with 192.0.2.1:51840 was 3m0s ago"},
		{"no echo ever", func(o *Observation) { o.Status.LastEcho = time.Time{} }, Connecting, "no echo"},
		{"echo at the limit", func(o *Observation) { o.Status.LastEcho = ago(EchoSilence - 1) }, Healthy, ""},
		{"old echo", func(o *Observation) { o.Status.LastEcho = ago(EchoSilence) }, Down, "answered last 3s ago"},
		{"a report of the year 9999", func(o *Observation) { o.Age = math.MinInt64 }, Unknown, "report is from 2562047h47m"},
		{"half lost", func(o *Observation) { o.Status.Loss = 0.48 }, Degraded, "48 % of the echoes"},
		{"two in a hundred lost", func(o *Observation) { o.Status.Loss = 0.02 }, Degraded, "2.0 % of the echoes"},
		{"less lost", func(o *Observation) { o.Status.Loss = 0.019 }, Healthy, ""},
		{"a failure of the gateway", func(o *Observation) { o.Status.Failed = []string{"nft: busy"} }, Degraded, "nft: busy"},
		{"loss and a node without proof", func(o *Observation) {
			o.Status.Loss, o.Status.Nodes[1].LastProof = 0.48, time.Time{}
		}, Degraded, "48 % of the echoes between the gateways are lost; no answer from nodes of the peer to node n2"},
		{"a node is silent", func(o *Observation) { o.Status.Nodes[1].LastEcho = ago(NodeSilence) }, Degraded, "gateway and node n2"},
		{"a node is not known to the gateway", func(o *Observation) { o.Nodes = append(o.Nodes, "n3") }, Degraded, "node n3"},
		{"a node refuses the peering", func(o *Observation) { o.Status.Nodes[0].Refused = "range" }, Degraded, "node n1 refuses"},
		{"a node is not answered", func(o *Observation) { o.Status.Nodes[0].LastProof = ago(ProofSilence) }, Degraded, "peer to node n1"},
		{"no node is answered", func(o *Observation) {
			o.Status.Nodes[0].LastProof, o.Status.Nodes[1].LastProof = time.Time{}, time.Time{}
		}, Down, "node n1, n2"},
		{"no nodes", func(o *Observation) { o.Nodes = nil }, Degraded, "no node is Ready"},
		{"paths that just carry it", func(o *Observation) { o.MTU, o.Status.Path.MTU, o.Status.Nodes[0].Path.MTU = 1420, 1480, 1470 }, Healthy, ""},
		{"a narrow path between gateways", func(o *Observation) { o.MTU, o.Status.Path.MTU = 1420, 1479 }, Degraded, "packets of 1420 bytes do not fit the path between the gateways, which carries 1479: enough for 1399"},
		{"a narrow path of a node", func(o *Observation) { o.MTU, o.Status.Nodes[1].Path.MTU = 1420, 1469 }, Degraded, "gateway and node n2, which carries 1469: enough for 1419"},
		{"a narrow path of a node that does not take part", func(o *Observation) { o.Nodes, o.MTU, o.Status.Nodes[1].Path.MTU = []string{"n1"}, 1420, 1400 }, Healthy, ""},
		{"a narrow path on which packets are lost", func(o *Observation) {
			o.MTU, o.Status.Path.MTU = 1420, 1400
			o.Status.Nodes[0].LastProof, o.Status.Nodes[1].LastProof = time.Time{}, time.Time{}
		}, Down, "do not fit"},

		{"UDP does not get through, of a peering that prefers it", func(o *Observation) {
			o.Transport, o.Status.Transport = records.AutoTransport, records.WebSocket
		}, Healthy, "UDP does not get through, packets go by WebSocket"},
		{"WebSocket without BBR", func(o *Observation) {
			o.Status.Transport, o.Status.Congestion = records.WebSocket, "cubic"
		}, Healthy, "WebSocket sends without BBR"},
		{"WebSocket with BBR", func(o *Observation) { o.Status.Transport, o.Status.Congestion = records.WebSocket, "bbr" }, Healthy, ""},
		{"WebSocket as it is set", func(o *Observation) {
			o.Transport, o.Status.Transport = records.WebSocket, records.WebSocket
		}, Healthy, ""},
		{"a gateway that does not know the settings", func(o *Observation) { o.Status.Transport = records.WebSocket }, Healthy, ""},
		{"a silent tunnel by WebSocket", func(o *Observation) {
			o.Transport, o.Status.Transport, o.Status.LastEcho = records.AutoTransport, records.WebSocket, ago(time.Minute)
		}, Down, "answered last 1m0s ago"},
		{"witnesses report no fault", func(o *Observation) { o.Witnesses = map[string]string{"n1": "", "n2": ""} }, Healthy, ""},
		{"all witnesses miss the gateway", func(o *Observation) {
			o.Witnesses = map[string]string{"n2": "no answer from the gateway"}
		}, Down, "node n2 reports: no answer from the gateway"},
		{"witnesses see what the gateway sees", func(o *Observation) {
			o.Status.LastEcho, o.Witnesses = ago(4*time.Second), map[string]string{"n2": "no answer from nodes of the peer"}
		}, Down, "answered last 4s ago; node n2 reports"},
		{"one of two witnesses misses it", func(o *Observation) {
			o.Witnesses = map[string]string{"n1": "", "n2": "no answer from the gateway"}
		}, Degraded, "node n2 reports"},
		{"a witness that is not Ready", func(o *Observation) {
			o.Nodes, o.Witnesses = []string{"n1"}, map[string]string{"n2": "no answer from the gateway"}
		}, Healthy, ""},
		{"a witness that the gateway misses is no second fault", func(o *Observation) {
			o.Status.Nodes[1].LastEcho, o.Witnesses = ago(time.Minute), map[string]string{"n2": "no answer from the gateway"}
		}, Degraded, "no echo between gateway and node n2"},
		// Packets of the other nodes cross.
		{"a witness whose answers the gateway misses is no second fault", func(o *Observation) {
			o.Status.Nodes[1].LastProof, o.Witnesses = ago(time.Minute), map[string]string{"n2": "no answer from nodes of the peer"}
		}, Degraded, "no answer from nodes of the peer to node n2"},
		{"an old report, and witnesses see why", func(o *Observation) {
			o.Age, o.Witnesses = time.Minute, map[string]string{"n1": "no answer from the gateway"}
		}, Down, "node n1 reports"},
		{"the gateway's own node is lost with it", func(o *Observation) {
			o.Age, o.GatewayNode, o.Witnesses = time.Minute, "n1", map[string]string{"n1": "", "n2": "no answer from the gateway"}
		}, Down, "node n2 reports"},
		{"the gateway's own node is the only one", func(o *Observation) {
			o.GatewayNode, o.Witnesses = "n1", map[string]string{"n1": "no answer from the gateway"}
		}, Down, "node n1 reports"},
		{"an old report, and witnesses report no fault", func(o *Observation) {
			o.Age, o.Witnesses = time.Minute, map[string]string{"n1": ""}
		}, Unknown, "1m0s old"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Observation{Status: healthyStatus(), Nodes: []string{"n1", "n2"}}
			tt.change(&o)
			state, reason := Judge(o)
			if state != tt.want || !strings.Contains(reason, tt.reason) || (reason == "") != (tt.reason == "") {
				t.Errorf("%s, %q; want %s, %q", state, reason, tt.want, tt.reason)
			}
		})
	}
}

// TestStateFollowsFromFindings: whatever reports say, a gateway is healthy exactly if no finding is above a warning,
// each state but healthy has a reason, and findings survive JSON.
func TestStateFollowsFromFindings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func(all ...time.Duration) time.Duration { return all[r.IntN(len(all))] }
	when := func() time.Time {
		if r.IntN(4) == 0 {
			return time.Time{}
		}
		return ago(some(0, time.Second, EchoSilence, NodeSilence, 3*time.Minute))
	}
	states := map[State]int{}
	for range 20_000 {
		tunnel := func() records.TunnelStatus {
			return records.TunnelStatus{LastEcho: when(), Session: records.Session{Since: when(), Usable: r.IntN(2) == 0}, Loss: float64(r.IntN(3)) / 100, Path: records.PathSize{MTU: r.IntN(3) * 740}}
		}
		s := &records.Status{Time: noon, TunnelStatus: tunnel()}
		for range r.IntN(3) {
			s.Tunnels = append(s.Tunnels, tunnel())
		}
		o := Observation{Status: s, Age: some(0, time.Minute, -time.Hour), MTU: r.IntN(2) * 1420, Witnesses: map[string]string{}}
		for _, name := range []string{"n1", "n2"}[:r.IntN(3)] {
			s.Nodes = append(s.Nodes, records.NodeStatus{Name: name, LastEcho: when(), LastProof: when(), Refused: []string{"", "", "range"}[r.IntN(3)]})
			o.Nodes, o.Witnesses[name] = append(o.Nodes, name), []string{"", "no answer"}[r.IntN(2)]
		}
		if r.IntN(4) == 0 {
			s.Failed, o.Problem = records.Failures{"nft: busy"}, "evicted"
		}
		findings := Together([][]Finding{Gateway(o)})
		above := slices.ContainsFunc(findings, func(f Finding) bool { return f.Level > Warning })
		state, reason := Judge(o)
		states[state]++
		if (state == Healthy) == above || above && reason == "" || slices.ContainsFunc(findings, func(f Finding) bool {
			return f.Text == "" || !slices.ContainsFunc(Kinds(), func(k Kind) bool { return k.Code == f.Code })
		}) {
			t.Fatalf("%s, %q: %+v of %+v", state, reason, findings, o)
		}
		text, err := json.Marshal(findings)
		var back []Finding
		if err != nil || json.Unmarshal(text, &back) != nil || StateOf(back) != state {
			t.Fatalf("%v: %s", err, text)
		}
	}
	if len(states) != len(States()) {
		t.Errorf("states %v", states)
	}
}

// TestSame: changes of the state lead to an immediate report, changes of counters and ages do not.
func TestSame(t *testing.T) {
	tests := map[string]struct {
		edit func(*records.Status)
		same bool
	}{
		"counters": {func(s *records.Status) {
			s.RxBytes, s.TxBytes, s.RTT, s.Loss = 1000, 2000, records.Duration(time.Second), 0.01
			s.Session = session(time.Second)
			s.Nodes[0].RTT = records.Duration(time.Second)
		}, true},
		"time":                       {func(s *records.Status) { s.Time, s.LastEcho = s.Time.Add(time.Second), s.LastEcho.Add(time.Second) }, true},
		"echoes end":                 {func(s *records.Status) { s.LastEcho = ago(EchoSilence) }, false},
		"much loss":                  {func(s *records.Status) { s.Loss = MuchLoss }, false},
		"no handshake":               {func(s *records.Status) { s.Session = records.Session{} }, false},
		"another pod":                {func(s *records.Status) { s.Pod = "gateway-b-y" }, false},
		"another endpoint":           {func(s *records.Status) { s.Endpoint = netip.MustParseAddrPort("192.0.2.8:30000") }, false},
		"another transport":          {func(s *records.Status) { s.Transport = records.WebSocket }, false},
		"another congestion control": {func(s *records.Status) { s.Congestion = "cubic" }, false},
		"failure":                    {func(s *records.Status) { s.Failed = []string{"route: no"} }, false},
		"host exposed": {func(s *records.Status) {
			s.Exposed = []records.Exposed{{Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1")}}
		}, false},
		"node falls silent":         {func(s *records.Status) { s.Nodes[0].LastEcho = ago(NodeSilence) }, false},
		"node's proof is old":       {func(s *records.Status) { s.Nodes[0].LastProof = ago(ProofSilence) }, false},
		"node without echoes":       {func(s *records.Status) { s.Nodes[0].LastEcho = time.Time{} }, false},
		"node sends through others": {func(s *records.Status) { s.Nodes[0].Unused = true }, false},
		"node joins":                {func(s *records.Status) { s.Nodes = append(s.Nodes, records.NodeStatus{Name: "n3"}) }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := healthyStatus()
			test.edit(s)
			if got := Same(*healthyStatus(), *s); got != test.same {
				t.Errorf("same: %v, want %v", got, test.same)
			}
		})
	}
}

// TestAgesDoNotTriggerReports: a silence that continues leads to no further reports.
func TestAgesDoNotTriggerReports(t *testing.T) {
	a, b := healthyStatus(), healthyStatus()
	a.LastEcho, b.LastEcho = ago(time.Minute), ago(2*time.Minute)
	if !Same(*a, *b) {
		t.Error("a silence that lasts longer is told")
	}
}

// TestGateways: a peering is healthy if all its gateways are, and down if none carries packets.
func TestGateways(t *testing.T) {
	silent := func(o *Observation) { o.Status.LastEcho = ago(time.Minute) }
	late := func(o *Observation) { o.Age = time.Hour }
	none := func(o *Observation) { o.Status = nil }
	lossy := func(o *Observation) { o.Status.Loss = 0.5 }
	well := func(*Observation) {}
	other := func(o *Observation) {
		o.Status.Tunnels = []records.TunnelStatus{o.Status.TunnelStatus, {Session: session(time.Minute), LastEcho: ago(time.Minute)}}
	}
	const secret = "Secret x is missing"
	tests := []struct {
		name     string
		gateways []func(*Observation)
		altered  []string
		want     State
		reason   string
	}{
		{"one", []func(*Observation){well}, nil, Healthy, ""},
		{"one, down", []func(*Observation){silent}, nil, Down, "the peer's gateway answered last 1m0s ago"},
		{"altered", []func(*Observation){well}, []string{secret}, Degraded, secret},
		{"altered, and down", []func(*Observation){silent}, []string{secret}, Down, secret + "; the peer's gateway answered last 1m0s ago"},
		{"two", []func(*Observation){well, well}, nil, Healthy, ""},
		{"one of two is down", []func(*Observation){well, silent}, nil, Degraded, "gateway 2: the peer's gateway answered last 1m0s ago"},
		{"one of two is late", []func(*Observation){late, well}, nil, Degraded, "gateway 1: the gateway's last report is 1h0m0s old"},
		{"one of two has not begun", []func(*Observation){well, none}, nil, Degraded, "gateway 2: the gateway has not reported yet"},
		{"one of two loses packets", []func(*Observation){well, lossy}, nil, Degraded, "gateway 2: 50 % of the echoes between the gateways are lost"},
		{"one loses packets, one is down", []func(*Observation){lossy, silent}, nil, Degraded,
			"gateway 1: 50 % of the echoes between the gateways are lost; gateway 2: the peer's gateway answered last 1m0s ago"},
		{"one of a gateway's tunnels is down", []func(*Observation){other, well}, nil, Degraded,
			"gateway 1: tunnel to gateway 2 of the peer: the peer's gateway answered last 1m0s ago"},
		{"both are down", []func(*Observation){silent, silent}, nil, Down, "the peer's gateway answered last 1m0s ago"},
		{"both are late", []func(*Observation){late, late}, nil, Unknown, "the gateway's last report is 1h0m0s old"},
		{"none has begun", []func(*Observation){none, none}, nil, Connecting, "the gateway has not reported yet"},
		{"one is down, one late", []func(*Observation){silent, late}, nil, Down,
			"gateway 1: the peer's gateway answered last 1m0s ago; gateway 2: the gateway's last report is 1h0m0s old"},
		{"one has not begun, one is late", []func(*Observation){none, late}, nil, Unknown, "gateway 2: the gateway's last report"},
		{"one of two is down, and an object altered", []func(*Observation){well, silent}, []string{secret}, Degraded, secret + "; gateway 2: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var all [][]Finding
			for _, change := range tt.gateways {
				o := Observation{Status: healthyStatus(), Nodes: []string{"n1", "n2"}}
				change(&o)
				all = append(all, Gateway(o))
			}
			findings := Together(all)
			for _, text := range tt.altered {
				findings = append([]Finding{OfObject("LQ-OBJECTS-INTACT", text)}, findings...)
			}
			state, reason := StateOf(findings), Reason(findings, len(all))
			if state != tt.want || !strings.Contains(reason, tt.reason) || (reason == "") != (state == Healthy) {
				t.Errorf("%s, %q; want %s, %q", state, reason, tt.want, tt.reason)
			}
		})
	}
}

// TestSameTunnels is TestSame for the tunnels of a gateway that has several.
func TestSameTunnels(t *testing.T) {
	several := func() *records.Status {
		s := healthyStatus()
		s.Tunnels = []records.TunnelStatus{s.TunnelStatus, s.TunnelStatus}
		return s
	}
	elsewhere := netip.MustParseAddrPort("192.0.2.8:30000")
	for name, test := range map[string]struct {
		edit func(*records.TunnelStatus)
		same bool
	}{
		"nothing":          {func(*records.TunnelStatus) {}, true},
		"counters":         {func(s *records.TunnelStatus) { s.RxBytes, s.RTT = 7, records.Duration(time.Second) }, true},
		"echoes end":       {func(s *records.TunnelStatus) { s.LastEcho = ago(EchoSilence) }, false},
		"no longer used":   {func(s *records.TunnelStatus) { s.Unused = "standby" }, false},
		"another endpoint": {func(s *records.TunnelStatus) { s.Endpoint = elsewhere }, false},
	} {
		s := several()
		test.edit(&s.Tunnels[1])
		if got := Same(*several(), *s); got != test.same {
			t.Errorf("%s: same: %v, want %v", name, got, test.same)
		}
	}
	// Writes for these would use up those of a new peering. A client tries each endpoint in turn.
	for name, tunnels := range map[string][]int{"of one of two tunnels": {1}, "of all tunnels": {0, 1}} {
		a, b := several(), several()
		for _, s := range []*records.Status{a, b} {
			for _, i := range tunnels {
				s.Tunnels[i].Session, s.Tunnels[i].LastEcho = records.Session{}, time.Time{}
			}
			s.TunnelStatus = s.Tunnels[0]
		}
		a.Tunnels[1].Unused, b.Tunnels[1].Unused = "no answer", "it has no way on"
		b.Tunnels[1].Endpoint = elsewhere
		if len(tunnels) == 2 {
			b.Tunnels[0].Endpoint, b.Endpoint, b.Nodes[0].Path = elsewhere, elsewhere, records.PathSize{Asked: true, MTU: 1500}
		}
		if !Same(*a, *b) {
			t.Errorf("%s: what changes while there is no answer is reported immediately", name)
		}
	}
}
