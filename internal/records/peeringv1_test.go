package records_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/records"
)

// version1 is a record as releases before several gateways wrote it.
const version1 = `version: 1
name: b
role: client
peer:
  clusterID: uid-b
  name: b
  podCIDRs:
  - real: 10.244.0.0/16
    seen: 10.11.0.0/16
  externalCIDR:
    real: 10.70.0.0/16
    seen: 10.71.0.0/16
  publicKey: ` + key + `
local:
  podCIDRs:
  - real: 10.244.0.0/16
    seen: 10.12.0.0/16
  externalCIDR:
    real: 10.70.0.0/16
    seen: 10.72.0.0/16
tunnel:
  implementation: auto
  address: 169.254.18.2/30
  peerAddress: 169.254.18.1
  listenPort: 51840
  endpoints:
  - 192.0.2.1:30000
overlayID: 7
gatewayAddress: 10.80.128.1
mtu: 1420
clampMSS: true
exposed:
- host: 198.51.100.7
  address: 10.70.128.1
`

// TestVersion1: a record of version 1 is one with a gateway and a tunnel. It is read, and not written.
func TestVersion1(t *testing.T) {
	got, err := records.Decode[records.Peering](version1)
	if err != nil {
		t.Fatal(err)
	}
	want := peering()
	want.Version, want.Gateways = 1, want.Gateways[:1]
	if diff := cmp.Diff(want, got, comparable); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text, err := records.Encode(got); err == nil {
		t.Errorf("it is written as\n%s", text)
	}
	got.Version = records.PeeringVersion
	if _, err := records.Encode(got); err != nil {
		t.Errorf("with the version of now: %v", err)
	}
	got, err = records.Decode[records.Peering](strings.Replace(version1, "mtu: 1420", "mtu: 1420\ngateways: []", 1))
	if want.Version = 1; err != nil || !cmp.Equal(want, got, comparable) {
		t.Errorf("with a field of version 2: %+v, %v", got, err)
	}
	_, err = records.Decode[records.Peering](strings.Replace(version1, "gatewayAddress: 10.80.128.1", "gatewayAddress: "+netip.IPv6Loopback().String(), 1))
	if err == nil {
		t.Error("a gateway without an IPv4 address is read")
	}
}
