//go:build linux

package helper

import (
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/tunnel"
)

// noon is when the statuses of tests are made.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func testStatus() records.Status {
	return records.Status{
		Version: records.SchemaVersion, Time: noon, Pod: "gateway-b-x", Implementation: records.Kernel, Overlay: records.Geneve,
		Endpoint: netip.MustParseAddrPort("192.0.2.7:30000"), LastHandshake: noon.Add(-time.Minute), LastEcho: noon.Add(-100 * time.Millisecond),
		RTT: records.Duration(time.Millisecond), RxBytes: 1, TxBytes: 2,
		Nodes: []records.NodeStatus{{Name: "n1", LastEcho: noon.Add(-time.Second), LastProof: noon.Add(-time.Second)}},
	}
}

func TestSameCondition(t *testing.T) {
	tests := map[string]struct {
		edit func(*records.Status)
		same bool
	}{
		"counters": {func(s *records.Status) {
			s.RxBytes, s.TxBytes, s.RTT, s.Loss = 1000, 2000, records.Duration(time.Second), 0.2
			s.LastHandshake = noon.Add(-time.Second)
			s.Nodes[0].RTT = records.Duration(time.Second)
		}, true},
		"time":             {func(s *records.Status) { s.Time, s.LastEcho = s.Time.Add(time.Second), s.LastEcho.Add(time.Second) }, true},
		"echoes end":       {func(s *records.Status) { s.LastEcho = noon.Add(-freshEcho) }, false},
		"much loss":        {func(s *records.Status) { s.Loss = muchLoss }, false},
		"no handshake":     {func(s *records.Status) { s.LastHandshake = time.Time{} }, false},
		"another pod":      {func(s *records.Status) { s.Pod = "gateway-b-y" }, false},
		"another endpoint": {func(s *records.Status) { s.Endpoint = netip.MustParseAddrPort("192.0.2.8:30000") }, false},
		"failure":          {func(s *records.Status) { s.Failed = []string{"route: no"} }, false},
		"host exposed": {func(s *records.Status) {
			s.Exposed = []records.Exposed{{Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1")}}
		}, false},
		"node falls silent": {func(s *records.Status) {
			s.Nodes[0].LastEcho = noon.Add(-freshNodeEcho)
		}, false},
		"node's proof is old": {func(s *records.Status) { s.Nodes[0].LastProof = noon.Add(-freshProof) }, false},
		"node never heard":    {func(s *records.Status) { s.Nodes[0].LastEcho = time.Time{} }, false},
		"node joins":          {func(s *records.Status) { s.Nodes = append(s.Nodes, records.NodeStatus{Name: "n2"}) }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := testStatus()
			test.edit(&s)
			if got := sameCondition(testStatus(), s); got != test.same {
				t.Errorf("same condition: %v, want %v", got, test.same)
			}
		})
	}
}

// TestHeard: before a handshake an endpoint is where the peer is looked for.
func TestHeard(t *testing.T) {
	s := tunnel.Stats{Endpoint: netip.MustParseAddrPort("192.0.2.7:30000")}
	if got := heard(s); got.IsValid() {
		t.Errorf("never heard: %s", got)
	}
	s.LastHandshake = noon
	if got := heard(s); got != s.Endpoint {
		t.Errorf("heard: %s", got)
	}
}

func TestStamp(t *testing.T) {
	if got := stamp(time.Time{}); !got.IsZero() {
		t.Errorf("no time became %s", got)
	}
	local := noon.Add(1234567 * time.Nanosecond).In(time.FixedZone("", 3600))
	if got := stamp(local); got.Location() != time.UTC || !got.Equal(noon.Add(time.Millisecond)) {
		t.Errorf("%s became %s", local, got)
	}
}
