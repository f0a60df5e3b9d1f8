package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// onlyIPv4 are the IPv4 addresses among others.
func onlyIPv4(all []string) (four []string) {
	for _, text := range all {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
			four = append(four, text)
		}
	}
	return four
}

// nodeAddresses are the IPv4 addresses of a cluster's nodes.
func nodeAddresses(ctx context.Context, t *testing.T, l *lab.Lab, cluster string) []string {
	t.Helper()
	return onlyIPv4(strings.Fields(kubectl(ctx, t, l, cluster, "get", "nodes", "-o",
		`jsonpath={.items[*].status.addresses[?(@.type=="InternalIP")].address}`)))
}

func familiesOf(addresses []string) (families []spec.Family) {
	for _, a := range addresses {
		families = append(families, spec.IPv6)
		if len(onlyIPv4([]string{a})) > 0 {
			families[len(families)-1] = spec.IPv4
		}
	}
	return families
}

// testFamilies checks that connected clusters have two families, a with IPv6 as the primary one and b with IPv4.
func testFamilies(ctx context.Context, t *testing.T, l *lab.Lab) {
	for cluster, want := range map[string][]spec.Family{"a": {spec.IPv6, spec.IPv4}, "b": {spec.IPv4, spec.IPv6}} {
		for _, c := range []struct {
			object string
			want   []spec.Family
			args   []string
		}{
			{"pods", want, []string{"get", "pods", "-l", "app=echo", "-o", "jsonpath={.items[0].status.podIPs[*].ip}"}},
			{"nodes", want, []string{"get", "nodes", "-o", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`}},
			{"the API server", want[:1], []string{"get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"}},
		} {
			addresses := strings.Fields(kubectl(ctx, t, l, cluster, c.args...))
			if got := familiesOf(addresses); !slices.Equal(got, c.want) {
				t.Errorf("addresses of %s of cluster %s: %q, want %s", c.object, cluster, addresses, c.want)
			}
		}
	}
}

// testIPv6Alone has a cluster of IPv6 alone refused.
func testIPv6Alone(ctx context.Context, t *testing.T, c liqoctl) {
	for cluster, node := range map[string]string{
		"six": fmt.Sprintf(readyNode, "fd00:244:0:1::/64", "fd00:172::11"), "b": fmt.Sprintf(readyNode, "10.244.0.0/24", "172.31.3.11"),
	} {
		file := filepath.Join(t.TempDir(), "node.yaml")
		require.NoError(t, os.WriteFile(file, []byte(node), 0o600))
		kubectl(ctx, t, c.lab, cluster, "apply", "-f", file)
		kubectl(ctx, t, c.lab, cluster, "apply", "--server-side", "--subresource=status", "-f", file)
		defer kubectl(ctx, t, c.lab, cluster, "delete", "-f", file)
	}
	for _, args := range [][]string{
		{"network", "init", "--context", "six"},
		{"network", "connect", "--context", "b", "--remote-context", "six"},
	} {
		out, said, code := c.run(ctx, t, args...)
		if code != 1 || !strings.Contains(said, `cluster "six": its nodes have no IPv4 addresses`) || !strings.Contains(said, "IPv6 is not supported") {
			t.Errorf("liqoctl %v: exit code %d\n%s%s", args, code, out, said)
		}
	}
}

// readyNode is a node without a kubelet; its format has a podCIDR and an address.
const readyNode = `apiVersion: v1
kind: Node
metadata: {name: ready}
spec: {podCIDR: "%[1]s", podCIDRs: ["%[1]s"]}
status:
  addresses: [{type: InternalIP, address: "%[2]s"}]
  conditions: [{type: Ready, status: "True", reason: Test, message: "", lastHeartbeatTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`
