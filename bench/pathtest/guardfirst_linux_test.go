package pathtest

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// largeObjects is the number of objects of 1 MB in TestGuardFirst.
const largeObjects = 100

// TestGuardFirst boots a node without a boot guard, beside objects that crash each process that decodes them: every
// kind that another token than liqoctl's can write, in turn, first while a hundred such objects have 1 MB each. The
// node's helper crashes repeatedly, but the guard is in the kernel before, and a capture of all links between the
// clusters contains no packet of the node and its pod.
func TestGuardFirst(t *testing.T) {
	t.Parallel()
	c := newConversation(t, combinations()[0])
	a, b := c.a, c.b
	c.connect()
	forget := a.writeLarge(largeObjects)
	for i, kind := range kindsOfOthers {
		t.Log(kind)
		if i == 1 {
			forget()
		}
		c.setMarkAt(a.NodeName(1), "")
		a.NodeHelpers[1].Kill()
		a.resetNode(1)
		for range 2 { // as the kubelet restarts it
			a.startSpoiled(1, kind, false)
			a.awaitBlocked(1, b)
			c.setMarkAt(a.NodeName(1), markSecret)
			a.awaitFault(1)
			c.awaitRounds()
			a.awaitBlocked(1, b)
		}
		c.expectEncrypted(kind)
	}
	a.StartNode(1)
	c.awaitReceived("all faults")
	c.expectEncrypted("all faults")
	c.capture.complete()
}

// writeLarge writes records of gateways of 1 MB each. Every tenth has the label of a peering's record: gateways can
// label their own objects. The returned function deletes them.
func (c *testCluster) writeLarge(n int) (remove func()) {
	c.t.Helper()
	var names []string
	text := strings.Repeat("x", 1_000_000)
	for i := range n {
		cm := clusters.ConfigMap(fmt.Sprintf("gateway-large-%d", i), text)
		if i%10 == 0 {
			cm.Labels[records.LabelComponent] = records.ComponentPeering
		}
		c.Create(cm)
		names = append(names, cm.Name)
	}
	return func() {
		for _, name := range names {
			c.Delete(name)
		}
	}
}

// startSpoiled starts a node's helper beside objects of a kind that crash it, or whose list never arrives.
func (c *testCluster) startSpoiled(i int, kind string, never bool) {
	j := job{Helper: c.NodeJob(i), Spoiled: kind, Never: never}
	c.NodeHelpers[i] = process.Start(c.t, c.Nodes[i], "node "+c.NodeName(i)+", "+kind, j)
}

// awaitFault waits until a node's helper has crashed by reading such an object.
func (c *testCluster) awaitFault(i int) {
	c.t.Helper()
	wait.Until(c.t, "the helper of "+c.NodeName(i)+" decodes it", joining, func() bool {
		return c.NodeHelpers[i].Logged("unexpected fault address") > 0
	})
	c.NodeHelpers[i].Kill()
}

// TestLateLists restarts a node's helper while the list of one kind of objects does not arrive. The ranges of a new
// peering are guarded, and the path to another peering stays. When the list arrives, the helper continues.
func TestLateLists(t *testing.T) {
	t.Parallel()
	a, b, _ := twoClusters(t)
	a.reserve(b)
	connectBoth(a, b)
	servePods(t, b)
	path := pathIn(a.Nodes[1])
	for i, kind := range append(kindsOfOthers, ofAPIServers) {
		t.Log(kind)
		a.NodeHelpers[1].Kill()
		added := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 99, byte(i), 0}), 24)
		a.reserveAlso(added)
		a.startSpoiled(1, kind, true)
		wait.Succeeds(t, joining, func() error {
			if set := a.Nodes[1].Run("nft", "list", "set", "ip", netops.Table, "peers"); !strings.Contains(set, added.String()) {
				return fmt.Errorf("%s is not guarded: %s", added, set)
			}
			return nil
		})
		for range someRounds {
			if _, err := seenBy(a.Pods[1], b.RemappedPod(0)); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
		}
		now := pathIn(a.Nodes[1])
		for line := range strings.Lines(path) {
			if !strings.Contains(now, line) {
				t.Errorf("%s: of the path there is no %s", kind, line)
			}
		}
		if !strings.Contains(now, "unreachable "+added.String()) {
			t.Errorf("%s: %s is not refused by a route", kind, added)
		}
	}
	a.NodeHelpers[1].Kill()
	a.StartNode(1)
	expectAll(a, b)
}

// reserveAlso adds a range of a peering without a record to the reservations.
func (c *testCluster) reserveAlso(p netip.Prefix) {
	c.t.Helper()
	c.Edit(records.IPAMName, func(text string) string { return text + fmt.Sprintf("- \"%s peering/new peer-pods\"\n", p) })
}

// TestBootGuardIsTakenOver boots the node of a gateway with its boot guard while the reservations, or a record, are
// unreadable or missing: a range may be that of a peering that cannot be read, and only the boot guard has it. The
// node's own guard takes the range over, and the boot guard is removed, since it would drop the packets of the tunnel
// to an endpoint in its ranges. The range is released once all peerings are known.
func TestBootGuardIsTakenOver(t *testing.T) {
	t.Parallel()
	a, b, _ := twoClusters(t)
	a.reserve(b)
	connectBoth(a, b)
	servePods(t, a, b)
	unknown := netip.MustParsePrefix("10.99.0.0/16")
	ranges := []netip.Prefix{b.Remapped, clusters.PeerExternal, unknown}
	for i := range b.Nodes {
		ranges = append(ranges, cidr.Single(b.NodeAddress(i))) // endpoints of the tunnel
	}
	guard := bootGuard(t, clusters.OverlayPorts[0], ranges...)
	n := a.Nodes[a.Gateways[0].Node]
	for what, spoil := range map[string]func() *corev1.ConfigMap{
		"damaged":  func() *corev1.ConfigMap { return a.Damage(records.IPAMName) },
		"too long": func() *corev1.ConfigMap { return a.tooLong(records.IPAMName) },
		"missing": func() *corev1.ConfigMap {
			good := a.Get(records.IPAMName)
			a.Delete(records.IPAMName)
			return good
		},
		"another record": func() *corev1.ConfigMap {
			a.Create(clusters.ConfigMap(records.PeeringName("x"), "no record"))
			return nil
		},
	} {
		node := a.Gateways[0].Node
		a.NodeHelpers[node].Kill()
		a.resetNode(node)
		n.Feed(guard, "nft", "-f", "-")
		good := spoil()
		a.StartNode(node)
		awaitLifted(t, n)
		expectAll(a, b)
		guarded := func() bool { return strings.Contains(n.IP("route show table all"), "unreachable "+unknown.String()) }
		if !guarded() {
			t.Errorf("%s: only the boot guard had %s, and it is lifted", what, unknown)
		}
		switch what {
		case "another record":
			a.Delete(records.PeeringName("x"))
		case "missing":
			good.ResourceVersion = ""
			a.Create(good)
		default:
			a.Put(good)
		}
		wait.Until(t, what+": the range is released", joining, func() bool { return !guarded() })
	}
}

// tooLong adds a comment to a record that makes it longer than helpers accept, and returns its previous content.
func (c *testCluster) tooLong(name string) *corev1.ConfigMap {
	c.t.Helper()
	id, _ := records.IdentityOf(name)
	return c.Edit(name, func(text string) string {
		return text + "# " + strings.Repeat("x", records.MaxSize(id.Component)) + "\n"
	})
}

// bootGuard returns the example of docs/boot-guard.md with other values: the ranges of peers and the port of the
// overlay.
func bootGuard(t *testing.T, overlayPort uint16, peers ...netip.Prefix) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/boot-guard.md")
	require.NoError(t, err)
	example := regexp.MustCompile(`(?m)^    table ip liqonet-boot\n(?:    .*\n)+`).FindString(string(page))
	ranges := strings.Trim(strings.ReplaceAll(fmt.Sprint(peers), " ", ", "), "[]")
	for pattern, value := range map[string]string{
		`elements = \{ .* \}`: "elements = { " + ranges + " }",
		`udp dport \d+ `:      fmt.Sprintf("udp dport %d ", overlayPort),
	} {
		field := regexp.MustCompile(pattern)
		if len(field.FindAllString(example, -1)) != 1 {
			t.Fatalf("the example has not one %s:\n%s", pattern, example)
		}
		example = field.ReplaceAllString(example, value)
	}
	return example
}
