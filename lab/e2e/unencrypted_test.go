package e2e

import (
	"context"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab/faults"
	"liqonet.io/liqonet/lab/require"
)

// testUnencrypted carries the peering without encryption, loses a gateway meanwhile, and returns to WireGuard.
func (x tunnels) testUnencrypted(ctx context.Context, t *testing.T) {
	const plain = `"wireguard": "plain"`
	args := []string{"network", "connect", "--context", "a", "--remote-context", "b", "--gw-server-service-type", "NodePort", "--update", "--tunnel", "plain"}
	if _, said, code := x.connector.run(ctx, t, args...); code == 0 || !strings.Contains(said, "add --unencrypted") {
		t.Errorf("without --unencrypted: exit code %d, %s", code, said)
	}
	x.connector.connect(ctx, t, "--update", "--tunnel", "plain", "--unencrypted", "--gw-server-websocket=false")
	for _, cluster := range []string{"a", "b"} {
		status := x.status(ctx, t, cluster)
		if !strings.Contains(status, plain) || !strings.Contains(status, "LQ-TUNNEL-ENCRYPTED") {
			t.Errorf("status of %s does not have the tunnels without encryption:\n%s", cluster, status)
		}
	}
	if again := x.connector.connect(ctx, t); again.Changed {
		t.Errorf("the same connect changes something: %+v", again)
	}
	s, err := x.bed.Run(ctx, faults.Fault{Name: "a gateway is deleted", Begin: func(ctx context.Context, _ *faults.Bed) (func(context.Context) error, error) {
		kubectl(ctx, t, x.lab, "b", "-n", "liqonet", "delete", "pod", "--wait=false", "-l", "liqonet.io/component=gateway,liqonet.io/gateway=2")
		return nil, nil
	}})
	require.NoError(t, err)
	t.Log(s.Line())
	if s.Sent == 0 || s.Broken > 0 || s.Without-s.Stalled > takenWithin {
		t.Errorf("a gateway without encryption is replaced: %+v", s)
	}
	x.connector.connect(ctx, t, append([]string{"--update", "--tunnel", "wireguard"}, overWebSocket...)...)
	if status := x.status(ctx, t, "a"); strings.Contains(status, plain) {
		t.Errorf("the tunnels are not encrypted again:\n%s", status)
	}
}

// status returns what is printed. Echoes that were lost while drivers changed can make the peering degraded for
// seconds.
func (x tunnels) status(ctx context.Context, t *testing.T, cluster string) string {
	t.Helper()
	out, _, _ := x.connector.run(ctx, t, "network", "status", "--context", cluster, "-o", "json")
	return out
}
