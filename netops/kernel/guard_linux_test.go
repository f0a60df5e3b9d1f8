package kernel

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// heldBack are ranges of peers that have no other configuration.
var heldBack = []netip.Prefix{netip.MustParsePrefix("10.11.0.0/16"), netip.MustParsePrefix("10.71.0.0/16")}

// TestGuardAlone: a node that knows only the ranges of its peers drops packets to them, by routes and by rules.
func TestGuardAlone(t *testing.T) {
	t.Parallel()
	if s := netops.GuardState(nil); !netops.Diff(s, netops.State{}).Empty() {
		t.Errorf("without ranges: %v", s)
	}
	ns := newNamespace(t)
	ns.Run("sh", "-ec", "ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up; ip addr add 192.0.2.1/24 dev v0;"+
		"ip route add default via 192.0.2.2")
	k := ns.kernel()
	reach(t, k, netops.GuardState(heldBack))
	for _, cidr := range heldBack {
		target := cidr.Addr().Next().String()
		if out := ns.Run("sh", "-c", "ip route get "+target+" 2>&1 || true"); !strings.Contains(out, "unreachable") && !strings.Contains(out, "No route") {
			t.Errorf("route to %s: %s", target, out)
		}
		ns.IP("route del unreachable " + cidr.String() + " table 7600") // the rules drop without the routes
		ns.Run("sh", "-c", "ping -c 1 -W 1 "+target+" || true")
	}
	have := observe(t, k)
	i := slices.IndexFunc(have.Rules, func(r netops.Rule) bool { return r.Table == netops.RoutingTable })
	if i < 0 {
		t.Errorf("rules %v", have.Rules)
	}
	if out := ns.Run("nft", "list", "chain", "ip", netops.Table, "guard"); !strings.Contains(out, "counter packets 2 ") {
		t.Errorf("two packets were sent, and the guard has counted\n%s", out)
	}
	reach(t, k, netops.GuardState(heldBack))
}

// TestHeldBackBesidePeers: ranges of a peer without a gateway do not affect the paths to others.
func TestHeldBackBesidePeers(t *testing.T) {
	t.Parallel()
	c := topology.NodeOfTwoPeers()
	alone := netops.NodeState(c)
	c.HeldBack = []netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")}
	both := netops.NodeState(c)
	guard := netops.GuardRoute(netops.RoutingTable, c.HeldBack[0])
	if !slices.Contains(both.Routes, guard) {
		t.Errorf("routes %v", both.Routes)
	}
	both.Routes = slices.DeleteFunc(both.Routes, func(r netops.Route) bool { return r == guard })
	i := slices.IndexFunc(both.Firewall.Sets, func(s nft.Set) bool { return s.Name == netops.SetPeers })
	if !slices.Contains(both.Firewall.Sets[i].Elements, c.HeldBack[0]) {
		t.Errorf("set %v", both.Firewall.Sets[i])
	}
	both.Firewall.Sets[i] = alone.Firewall.Sets[i]
	if plan := netops.Diff(alone, both); !plan.Empty() {
		t.Errorf("the rest changes:\n%s", plan)
	}
}
