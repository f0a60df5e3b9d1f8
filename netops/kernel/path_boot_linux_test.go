package kernel

import (
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops"
)

// TestBootGuardBesideEndpoint: a boot guard that stays drops the packets of a served peering's tunnel, if its endpoint
// is in the guarded ranges. They cross with the rule for endpoints of docs/connect.md.
func TestBootGuardBesideEndpoint(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		a, b := nodesAmongPods(t, kind)
		answered := func(wait time.Duration) bool {
			c, err := a.nodes[1].pod.Dial(t.Context(), "udp4", at(b.seenPod(0)))
			require.NoError(t, err)
			defer func() { _ = c.Close() }()
			_, err = question(c, "?", wait)
			return err == nil
		}
		if !answered(answerWait) {
			t.Fatal("no answer without a boot guard")
		}
		rule := func(text string) {
			for _, n := range a.nodes {
				n.Run("nft", strings.Fields(text)...)
			}
		}
		rule("add table ip " + BootTable)
		rule("add chain ip " + BootTable + " guard { type filter hook postrouting priority 75 ; policy accept ; }")
		rule("add rule ip " + BootTable + " guard oifname lqn-* accept")
		rule("add rule ip " + BootTable + " guard ip daddr 10.244.0.0/16 counter drop")
		if answered(time.Second) {
			t.Error("the boot guard lets the tunnel pass without the rule for its endpoint")
		}
		rule("insert rule ip " + BootTable + " guard ip daddr 10.244.250.0/24 meta l4proto udp accept")
		if !answered(answerWait) {
			t.Error("no answer with the rule for the endpoint")
		}
	})
}
