package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab/spec"
)

// narrow sets the MTU of the router between the clusters' node networks.
func (c liqoctl) narrow(ctx context.Context, t *testing.T, declared spec.Spec, mtu int) {
	t.Helper()
	for _, cluster := range declared.Clusters {
		inNode(ctx, t, c, "router", fmt.Sprintf("ip route change %s dev br-%s src %s mtu lock %d",
			cluster.NodeNetwork, cluster.Name, cluster.RouterAddress(), mtu))
	}
}

// testMTU verifies that packets of that size cross unfragmented, larger ones are refused, and bulk TCP passes,
// and that connect and status name the bottleneck.
func testMTU(ctx context.Context, t *testing.T, c liqoctl, conn connection, mtu int) {
	if conn.MTU != mtu {
		t.Fatalf("MTU %d, want %d", conn.MTU, mtu)
	}
	said := c.must(ctx, t, "network", "connect", "--context", "a", "--remote-context", "b", "-o", "wide")
	for _, want := range []string{
		"nothing changed", fmt.Sprintf("MTU %d: measured", mtu), fmt.Sprintf("%d between the gateways", mtu+80),
		fmt.Sprintf("bottleneck: between the gateways, path MTU %d,", mtu+80),
	} {
		if !strings.Contains(said, want) {
			t.Errorf("connect says no %q:\n%s", want, said)
		}
	}
	for _, cluster := range []string{"a", "b"} {
		c.awaitText(ctx, t, cluster, fmt.Sprintf("%d between gateways, 1500 to nodes", mtu+80))
	}
	for _, s := range sides(conn) {
		sender := podOn(ctx, t, c.lab, s.cluster, nodesOf(ctx, t, c.lab, s.cluster)[0])
		target := s.self.seen(t, podOn(ctx, t, c.lab, s.other, nodesOf(ctx, t, c.lab, s.other)[0]).IP)
		inPod(ctx, t, c.lab, s.cluster, sender, "tcp", "-timeout", patience.String(), "-size", "20000000", target+":7")
		if out, err := c.lab.Kubectl(ctx, s.cluster, "exec", sender.Name, "--", "/bin/workload", "ping", "-timeout", silence, "-df", "-size", fmt.Sprint(mtu-27), target); err == nil {
			t.Errorf("a packet of %d bytes crosses: %s", mtu+1, out)
		}
	}
}
