//go:build linux

package helper

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestReadinessOfAGateway checks that a gateway is not ready before it serves its peering, and that its status, not its
// readiness, shows a record that is damaged later.
func TestReadinessOfAGateway(t *testing.T) {
	ns, keys := netns.New(t), t.TempDir()
	ns.IP("link add eth0 type veth peer name far0")
	ns.IP("link set eth0 up")
	ns.IP("addr add " + gatewayAddress.String() + "/24 dev eth0")
	peer, err := wgtypes.GeneratePrivateKey()
	require.NoError(t, err)
	for _, name := range []string{records.PrivateKeyKey, records.PresharedKeyKey} {
		key, err := wgtypes.GeneratePrivateKey()
		if err == nil {
			err = os.WriteFile(filepath.Join(keys, name), []byte(key.String()), 0o600)
		}
		require.NoError(t, err)
	}
	api := newTestAPI(t)
	own := configMap(t, firstGateway("b").StatusName(), records.ComponentStatus, "b", testStatus())
	own.Data = nil
	api.add(own, gatewayMap(t, "b", testGateway()), fabricMap(t, testFabric()))
	p := api.start(ns, job{Gateway: &Gateway{ID: firstGateway("b"), Pod: "gateway-b-x", PodIP: gatewayAddress, Node: "n1", Keys: keys}})
	wait.Until(t, "an answer", patience, func() bool { err := p.ready(); return err == nil || errors.Is(err, process.ErrUnavailable) })
	wait.Until(t, "a pass without the peering's record", patience, func() bool { return p.counter("liqonet_records_refused") == 1 })
	if err := p.ready(); !errors.Is(err, process.ErrUnavailable) {
		t.Errorf("before there is a record of its peering: %v", err)
	}
	server := testPeering()
	server.Role = records.Server
	tunnel := &server.Gateways[0].Tunnels[0]
	tunnel.PublicKey = peer.PublicKey().String()
	tunnel.Endpoints, tunnel.Address, tunnel.PeerAddress = nil, netip.MustParsePrefix("169.254.18.1/30"), netip.MustParseAddr("169.254.18.2")
	api.add(peeringMap(t, server))
	wait.Succeeds(t, patience, p.ready)
	damaged := peeringMap(t, server)
	damaged.Data[records.DataKey] = "x"
	if _, err := api.CoreV1().ConfigMaps(testNamespace).Update(t.Context(), damaged, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the fault in the status", patience, func() bool {
		s, _ := api.status()
		return len(s.Failed) == 1 && !strings.Contains(s.Failed[0], errWaiting.Error()) // of the first passes
	})
	if err := p.ready(); err != nil {
		t.Errorf("one damaged record, and the gateway is not ready: %v", err)
	}
}
