package e2e

import (
	"context"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab/require"
)

// strictFirewall is an iptables configuration that an administrator could have: pods reach each other and nodes, and no
// other packet is forwarded.
const strictFirewall = `set -e
iptables -P FORWARD DROP
iptables -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
iptables -A FORWARD -s 10.244.0.0/16 -d 10.244.0.0/16,172.31.0.0/16 -j ACCEPT
iptables -A FORWARD -s 172.31.0.0/16 -d 10.244.0.0/16 -j ACCEPT`

// noFirewall admits all, but makes the table of a firewall.
const noFirewall = "iptables -P FORWARD ACCEPT; iptables -F FORWARD"

// testFirewall adds firewalls to cluster a's nodes, after a disconnect: connect refuses, and with --allow-forward keeps
// its rules in them while there is a peering.
func testFirewall(ctx context.Context, t *testing.T, c liqoctl) {
	c.must(ctx, t, "network", "disconnect", "--context", "a", "--remote-context", "b")
	before := map[string]string{}
	for _, node := range nodesOf(ctx, t, c.lab, "a") {
		inNode(ctx, t, c, node, strictFirewall)
		before[node] = forwardRules(ctx, t, c, node)
	}
	connect := []string{"network", "connect", "--context", "a", "--remote-context", "b", "--gw-server-service-type", "NodePort"}
	var said string
	await(ctx, t, func() bool { // until the helpers have looked again
		out, stderr, code := c.run(ctx, t, append(connect, "--timeout", "30s")...)
		said = out + stderr
		if code == 0 {
			c.must(ctx, t, "network", "disconnect", "--context", "a", "--remote-context", "b")
		}
		return code == 1 && strings.Contains(said, `a-1 (chain "ip filter FORWARD")`) && strings.Contains(said, "--allow-forward")
	}, func() string { return said })
	if left := kubectl(ctx, t, c.lab, "a", "-n", "liqonet", "get", "deployments,configmaps", "-l", "liqonet.io/peering", "-o", "name"); left != "" {
		t.Errorf("left by the connect that refused:\n%s", left)
	}

	conn := c.connect(ctx, t, "--allow-forward", "--update")
	for _, s := range sides(conn) {
		testStyledPods(ctx, t, c.lab, s, "1000")
	}
	for node := range before {
		inNode(ctx, t, c, node, `iptables -D FORWARD -i lqn-+ -m comment --comment "liqonet: from lqn-*" -j ACCEPT`)
		rules := ""
		await(ctx, t, func() bool {
			rules = forwardRules(ctx, t, c, node)
			return strings.Contains(rules, "-i lqn-+") && strings.Contains(rules, "-o lqn-+")
		}, func() string { return rules })
	}
	c.must(ctx, t, "network", "disconnect", "--context", "a", "--remote-context", "b")
	for node, want := range before {
		if got := forwardRules(ctx, t, c, node); got != want {
			t.Errorf("node %s after disconnect:\n%s\nwant:\n%s", node, got, want)
		}
		inNode(ctx, t, c, node, noFirewall)
	}
}

func forwardRules(ctx context.Context, t *testing.T, c liqoctl, node string) string {
	t.Helper()
	return inNode(ctx, t, c, node, "iptables -S FORWARD")
}

// inNode runs a shell's script in a node.
func inNode(ctx context.Context, t *testing.T, c liqoctl, node, script string) string {
	t.Helper()
	out, err := c.lab.NodeExec(ctx, node, "sh", "-c", script)
	require.NoError(t, err)
	return string(out)
}
