//go:build linux

package gateway

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/internal/testbed/require"
)

// measuredGateway returns a gateway with two tunnels, one of which is down, and two nodes, one of which is silent.
func measuredGateway(t *testing.T, change func(*records.Status)) (*helper.Metrics, map[string]float64) {
	t.Helper()
	now := time.Now()
	up := records.TunnelStatus{
		Session: records.Session{Since: now.Add(-time.Minute), Usable: true}, LastEcho: now, RTT: records.Duration(1500 * time.Microsecond), Loss: 0.25,
		Path: records.PathSize{Asked: true, MTU: 1500}, RxBytes: 1000, TxBytes: 2000, Transport: records.WebSocket,
	}
	s := records.Status{
		Time: now, KeyCreated: time.Unix(1_700_000_000, 0), TunnelStatus: up, Tunnels: []records.TunnelStatus{up, {Unused: "no answer"}},
		Nodes: []records.NodeStatus{{Name: "n1", LastEcho: now, LastProof: now}, {Name: "n2"}},
	}
	change(&s)
	var latest *report
	m := helper.NewMetrics()
	m.Registry.MustRegister(&measurements{records.GatewayID{Peering: "b", Number: 2}, func() *report { return latest }})
	if none := values(t, m, "liqonet_tunnel"); len(none) > 0 {
		t.Errorf("before the first report: %v", none)
	}
	latest = &report{Status: s, mtu: 1400}
	return m, values(t, m, "liqonet_")
}

// values returns the gauges and counters with a prefix, by name and labels.
func values(t *testing.T, m *helper.Metrics, prefix string) map[string]float64 {
	t.Helper()
	families, err := m.Registry.Gather()
	require.NoError(t, err)
	all := make(map[string]float64)
	for _, f := range families {
		for _, one := range f.GetMetric() {
			var labels []string
			for _, l := range one.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			if name := f.GetName() + "{" + strings.Join(labels, ",") + "}"; strings.HasPrefix(name, prefix) {
				all[name] = one.GetGauge().GetValue() + one.GetCounter().GetValue()
			}
		}
	}
	return all
}

func TestMeasurements(t *testing.T) {
	var got map[string]float64
	// Immediately, by its clock.
	synctest.Test(t, func(t *testing.T) { _, got = measuredGateway(t, func(*records.Status) {}) })
	for name, want := range map[string]float64{
		"gateway_state{gateway=2,peering=b,state=degraded}": 1, "gateway_state{gateway=2,peering=b,state=healthy}": 0,
		"gateway_nodes{gateway=2,peering=b}": 2, "gateway_nodes_verified{gateway=2,peering=b}": 1,
		"tunnel_up{gateway=2,peer_gateway=1,peering=b}": 1, "tunnel_up{gateway=2,peer_gateway=2,peering=b}": 0,
		"tunnel_used{gateway=2,peer_gateway=1,peering=b}": 1, "tunnel_used{gateway=2,peer_gateway=2,peering=b}": 0,
		"tunnel_carried{gateway=2,peer_gateway=1,peering=b}": 1, "tunnel_carried{gateway=2,peer_gateway=2,peering=b}": 0,
		"tunnel_round_trip_seconds{gateway=2,peer_gateway=1,peering=b}": 0.0015, "tunnel_loss_ratio{gateway=2,peer_gateway=1,peering=b}": 0.25,
		"tunnel_received_bytes_total{gateway=2,peer_gateway=1,peering=b}": 1000, "tunnel_transmitted_bytes_total{gateway=2,peer_gateway=1,peering=b}": 2000,
		"tunnel_path_mtu_bytes{gateway=2,peer_gateway=1,peering=b}": 1500, "gateway_key_created_timestamp_seconds{gateway=2,peering=b}": 1_700_000_000,
	} {
		if value, ok := got["liqonet_"+name]; !ok || value != want {
			t.Errorf("%s is %v (%v), want %v", name, value, ok, want)
		}
	}
	for _, absent := range []string{"round_trip_seconds", "last_handshake_timestamp_seconds", "path_mtu_bytes"} {
		if value, ok := got["liqonet_tunnel_"+absent+"{gateway=2,peer_gateway=2,peering=b}"]; ok {
			t.Errorf("%s of a tunnel that was never up is %v", absent, value)
		}
	}
}

// TestStaleMeasurements checks that a gateway that has stopped measuring is not shown as healthy.
func TestStaleMeasurements(t *testing.T) {
	_, got := measuredGateway(t, func(s *records.Status) {
		s.Time, s.Nodes = s.Time.Add(-time.Minute), s.Nodes[:1]
		s.LastEcho, s.Tunnels = s.Time, nil
		s.Nodes[0].LastEcho, s.Nodes[0].LastProof = s.Time, s.Time
	})
	if got["liqonet_gateway_state{gateway=2,peering=b,state=unknown}"] != 1 {
		t.Errorf("%v", got)
	}
}

// everyMetric returns the metrics of a helper with a series of each, except those of dropped packets.
func everyMetric(t *testing.T) *helper.Metrics {
	t.Helper()
	m, _ := measuredGateway(t, func(*records.Status) {})
	r := helper.NewReconciler(nil, slog.New(slog.DiscardHandler), m)
	r.AddDrift(helper.TunnelObject("lqn-tunnel"))
	r.ReportFaults([]serving.Fault{{Object: "x", Err: helper.ErrWaiting}})
	m.Ignored.WithLabelValues("x").Inc()
	return m
}

// TestConventions checks names and texts of metrics against the Prometheus conventions.
func TestConventions(t *testing.T) {
	families, err := everyMetric(t).Registry.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 || len(families) < 15 {
		t.Errorf("%v, %d metrics: %v", err, len(families), problems)
	}
}

// TestMonitoringKnowsMetrics checks that alerts, dashboard and docs use existing metrics, and that docs list all.
func TestMonitoringKnowsMetrics(t *testing.T) {
	const docs = "../../../docs/monitoring.md"
	families, err := everyMetric(t).Registry.Gather()
	require.NoError(t, err)
	// Series of these start with the first dropped packet.
	known := map[string]bool{"liqonet_dropped_packets_total": true, "liqonet_echo_ignored_total": true}
	for _, f := range families {
		known[f.GetName()] = true
		if f.GetMetric()[0].GetHistogram() != nil {
			known[f.GetName()+"_bucket"] = true
		}
	}
	files, err := filepath.Glob("../../../docs/monitoring/*")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v: %v", files, err)
	}
	metric := regexp.MustCompile(`liqonet_[a-z_]+`)
	for _, file := range append(files, docs) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range metric.FindAllString(string(text), -1) {
			if !known[name] && !known[name+"_total"] { // not a name of a recording rule
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
		for _, f := range families {
			if file == docs && !strings.Contains(string(text), "`"+f.GetName()+"`") {
				t.Errorf("%s says nothing of %s", file, f.GetName())
			}
		}
	}
}

// TestRulesAreComplete checks the fields of every rule and panel that Prometheus and Grafana require.
func TestRulesAreComplete(t *testing.T) {
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Record, Expr string
					Labels, Annotations map[string]string
				} `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	var dashboard struct {
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		} `json:"panels"`
	}
	for file, into := range map[string]any{"rules.yaml": &rules, "dashboard.json": &dashboard} {
		text, err := os.ReadFile(filepath.Join("../../../docs/monitoring", file))
		if err != nil || yaml.Unmarshal(text, into) != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			alert := r.Alert != "" && r.Labels["severity"] != "" && r.Annotations["summary"] != "" && r.Annotations["description"] != ""
			if r.Expr == "" || alert == (r.Record != "") {
				t.Errorf("%+v", r)
			}
		}
	}
	ids := make(map[int]bool)
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.H == 0 || len(p.Targets) == 0 || p.Targets[0].Expr == "" {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
	}
	if len(rules.Spec.Groups) != 2 || len(ids) < 8 {
		t.Errorf("%d groups, %d panels", len(rules.Spec.Groups), len(ids))
	}
}
