package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// diagnosis has the fields of `network diagnose -o json` that tests use.
type diagnosis struct {
	Passed bool
	Checks []struct{ ID, State, Cluster, Peer, Observed, Follows string }
}

// causes are the checks that failed without another failure that explains it, and those that warn, with "?".
func (d diagnosis) causes() (ids []string) {
	for _, c := range d.Checks {
		switch c.State {
		case "failed":
			ids = append(ids, c.ID)
		case "warning":
			ids = append(ids, c.ID+"?")
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// diagnose diagnoses the peering of a and b from both sides.
func (c liqoctl) diagnose(ctx context.Context, t *testing.T, more ...string) (d diagnosis, text string) {
	t.Helper()
	args := append([]string{"network", "diagnose", "--context", "a", "--remote-context", "b"}, more...)
	out, said, code := c.run(ctx, t, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &d); err != nil || d.Passed != (code == 0) || !d.Passed && code != 3 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, said)
	}
	for _, c := range d.Checks {
		if c.State != "passed" && c.State != "skipped" {
			text += c.State + " " + c.ID + " " + c.Cluster + ": " + c.Observed + " " + c.Follows + "\n"
		}
	}
	return d, text
}

// awaitCauses waits until exactly these checks fail or warn as causes.
func (c liqoctl) awaitCauses(ctx context.Context, t *testing.T, want ...string) {
	t.Helper()
	c.awaitDiagnosis(ctx, t, strings.Join(want, ", "), func(causes []string) bool { return slices.Equal(causes, want) })
}

// awaitDiagnosis waits until the causes are what is wanted: a fault shows after seconds, and a busy machine loses
// packets.
func (c liqoctl) awaitDiagnosis(ctx context.Context, t *testing.T, want string, holds func(causes []string) bool, more ...string) {
	t.Helper()
	var d diagnosis
	var text string
	await(ctx, t, func() bool {
		d, text = c.diagnose(ctx, t, more...)
		return holds(d.causes())
	}, func() string {
		return "causes " + strings.Join(d.causes(), ", ") + ", want " + want + "\n" + text
	})
	if text != "" {
		t.Log(text)
	}
}

// tunnelFault begins a rule of the router about packets of the tunnel between a and b: between nodes, only it is UDP.
// The router's hooks may see what its bridges forward, such as flannel's VXLAN.
const tunnelFault = "add table ip fault; add chain ip fault forward { type filter hook forward priority 0; }; add rule ip fault forward " +
	"ip saddr . ip daddr { 172.31.1.0/24 . 172.31.2.0/24, 172.31.2.0/24 . 172.31.1.0/24 } meta l4proto udp "

// testDiagnose diagnoses a peering, of which it finds nothing wrong, and injects faults in turn: each fails its own
// check, and whatever else fails follows from it. The short form has two of them.
func testDiagnose(ctx context.Context, t *testing.T, u users) {
	admin, l := u.admin, u.admin.lab
	u.looker.awaitCauses(ctx, t) // level view is enough
	u.installer.awaitDiagnosis(ctx, t, "none", func(causes []string) bool { return len(causes) == 0 }, "--probe")
	node := func(name, script string) func() {
		return func() { t.Helper(); inNode(ctx, t, admin, name, script) }
	}
	router := func(rule string) (inject, heal func()) {
		return func() {
			t.Helper()
			if _, err := l.NodeExec(ctx, "router", "nft", tunnelFault+rule); err != nil {
				t.Fatal(err)
			}
		}, func() { node("router", "nft delete table ip fault")() }
	}
	k := func(cluster string, args ...string) func() {
		return func() { t.Helper(); kubectl(ctx, t, l, cluster, append([]string{"-n", "liqonet"}, args...)...) }
	}
	connect := func() { t.Helper(); u.connector.connect(ctx, t, "--update") }
	fault := func(want string, inject, heal func()) {
		t.Helper()
		inject()
		func() {
			defer heal() // also if another cause is found: what follows needs a healthy peering
			admin.awaitCauses(ctx, t, want)
		}()
		admin.awaitCauses(ctx, t)
	}
	cut := func(want, rule string) {
		t.Helper()
		inject, heal := router(rule)
		fault(want, inject, heal)
	}

	fault("LQ-OVERLAY-ECHO",
		node("a-1", "nft 'add table ip fault; add chain ip fault out { type filter hook output priority 0; }; add rule ip fault out udp dport 6091 drop'"),
		node("a-1", "nft delete table ip fault"))
	fault("LQ-OBJECTS-INTACT", k("b", "delete", "role", "gateway-a"), connect)
	if testing.Short() {
		return
	}
	cut("LQ-TUNNEL-HANDSHAKE", "drop")
	// UDP 8 and WireGuard's messages: initiation 148, response 92, keepalive 32.
	cut("LQ-TUNNEL-ECHO", "udp length != { 156, 100, 40 } drop")
	cut("LQ-TUNNEL-LOSS", "numgen random mod 100 < 20 drop")
	fault("LQ-GATEWAY-POLICY?",
		k("b", "create", "-f", "testdata/denyall.yaml"), k("b", "delete", "networkpolicy", "deny-all"))
	fault("LQ-OBJECTS-INTACT",
		k("b", "patch", "service", "gateway-a", "-p", `{"spec":{"type":"LoadBalancer"}}`),
		k("b", "patch", "service", "gateway-a", "-p", `{"spec":{"type":"NodePort"}}`))
	foreign := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("B", 42) + "A="))
	fault("LQ-TUNNEL-KEYS", k("a", "patch", "secret", "peering-b", "-p", `{"data":{"presharedKey":"`+foreign+`"}}`), connect)
	fault("LQ-GATEWAY-RUNNING", func() {
		k("a", "create", "quota", "none", "--hard=pods=0")()
		k("a", "delete", "pod", "-l", "liqonet.io/component=gateway", "--grace-period=1", "--wait=false")()
	}, func() {
		k("a", "delete", "quota", "none")()
		// The controller of the ReplicaSet rests longer after each refusal.
		k("a", "rollout", "restart", "deployment/gateway-b")()
	})
	// A chain that drops by default may have rules for what pods send, and nodes, which verify the path, do not pass
	// it.
	fault("LQ-NODES-FORWARD?", node("a-1", strictFirewall), node("a-1", noFirewall))

	// A program that masquerades packets to the peer: only packets show it.
	node("a-1", "nft 'add table ip fault; add chain ip fault post { type nat hook postrouting priority 0; }; add rule ip fault post ip saddr 10.244.0.0/16 oifname \"lqn-*\" masquerade'")()
	u.installer.awaitDiagnosis(ctx, t, "LQ-PATH-SOURCE or LQ-PATH-PACKETS", func(causes []string) bool {
		return slices.Contains(causes, "LQ-PATH-SOURCE") || slices.Contains(causes, "LQ-PATH-PACKETS")
	}, "--probe")
	node("a-1", "nft delete table ip fault")()
	u.looker.awaitCauses(ctx, t)

	// Pods of a node that forwards nothing, a gateway among them, reach nothing. The setting changes links of the
	// helper, too, which it restores: that stays a warning.
	node("a-1", "sysctl -qw net.ipv4.ip_forward=0")()
	admin.awaitDiagnosis(ctx, t, "LQ-NODES-FORWARD, and not LQ-GATEWAY-REPORT", func(causes []string) bool {
		return slices.Contains(causes, "LQ-NODES-FORWARD") && !slices.Contains(causes, "LQ-GATEWAY-REPORT")
	})
	node("a-1", "sysctl -qw net.ipv4.ip_forward=1")()
	admin.awaitCauses(ctx, t, "LQ-NODES-DRIFT?")
}
