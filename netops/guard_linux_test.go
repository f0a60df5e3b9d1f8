package netops

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/netops/nft"
)

// heldBack are ranges of peers that have no other configuration.
var heldBack = []netip.Prefix{netip.MustParsePrefix("10.11.0.0/16"), netip.MustParsePrefix("10.71.0.0/16")}

// TestGuardAlone: a node that knows only the ranges of its peers drops packets to them, by routes and by rules.
func TestGuardAlone(t *testing.T) {
	t.Parallel()
	if s := GuardState(nil); !Diff(s, State{}).Empty() {
		t.Errorf("without ranges: %v", s)
	}
	ns := newNamespace(t)
	ns.Run("sh", "-ec", "ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up; ip addr add 192.0.2.1/24 dev v0;"+
		"ip route add default via 192.0.2.2")
	k := ns.kernel()
	reach(t, k, GuardState(heldBack))
	for _, cidr := range heldBack {
		target := cidr.Addr().Next().String()
		if out := ns.Run("sh", "-c", "ip route get "+target+" 2>&1 || true"); !strings.Contains(out, "unreachable") && !strings.Contains(out, "No route") {
			t.Errorf("route to %s: %s", target, out)
		}
		ns.IP("route del unreachable " + cidr.String() + " table 7600") // the rules drop without the routes
		ns.Run("sh", "-c", "ping -c 1 -W 1 "+target+" || true")
	}
	have, err := k.Observe()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(have.Rules, func(r Rule) bool { return r.Table == RoutingTable })
	if i < 0 {
		t.Errorf("rules %v", have.Rules)
	}
	if out := ns.Run("nft", "list", "chain", "ip", Table, "guard"); !strings.Contains(out, "counter packets 2 ") {
		t.Errorf("two packets were sent, and the guard has counted\n%s", out)
	}
	reach(t, k, GuardState(heldBack))
}

// TestHeldBackBesidePeers: ranges of a peer without a gateway do not affect the paths to others.
func TestHeldBackBesidePeers(t *testing.T) {
	t.Parallel()
	c := nodeOfTwoPeers()
	alone := NodeState(c)
	c.HeldBack = []netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")}
	both := NodeState(c)
	guard := guardRoute(RoutingTable, c.HeldBack[0])
	if !slices.Contains(both.Routes, guard) {
		t.Errorf("routes %v", both.Routes)
	}
	both.Routes = slices.DeleteFunc(both.Routes, func(r Route) bool { return r == guard })
	i := slices.IndexFunc(both.Firewall.Sets, func(s nft.Set) bool { return s.Name == setPeers })
	if !slices.Contains(both.Firewall.Sets[i].Elements, c.HeldBack[0]) {
		t.Errorf("set %v", both.Firewall.Sets[i])
	}
	both.Firewall.Sets[i] = alone.Firewall.Sets[i]
	if plan := Diff(alone, both); !plan.Empty() {
		t.Errorf("the rest changes:\n%s", plan)
	}
}
