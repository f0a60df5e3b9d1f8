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
		TunnelStatus: records.TunnelStatus{
			Endpoint: netip.MustParseAddrPort("192.0.2.7:30000"), LastHandshake: noon.Add(-time.Minute), LastEcho: noon.Add(-100 * time.Millisecond),
			RTT: records.Duration(time.Millisecond), RxBytes: 1, TxBytes: 2,
		},
		Nodes: []records.NodeStatus{{Name: "n1", LastEcho: noon.Add(-time.Second), LastProof: noon.Add(-time.Second)}},
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
