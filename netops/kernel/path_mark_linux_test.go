package kernel

import (
	"fmt"
	"slices"
	"testing"
)

// TestMarksOfOuterPackets: nodes mark arriving overlay packets, as Cilium does with the identity of the gateway pod.
// Decapsulation keeps the mark, and it is removed from the peer's packets before it has an effect.
func TestMarksOfOuterPackets(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		nodes := slices.Concat(a.nodes[:], b.nodes[:])
		for _, n := range nodes {
			n.NFT(
				"table ip marks {",
				fmt.Sprintf("chain outer { type filter hook prerouting priority -400; udp dport %d meta mark set 0x12340f00; }", overlayPort),
				`chain inner { type filter hook prerouting priority -399; iifname "lqn-*" mark 0x12340f00 counter; }`,
				fmt.Sprintf("chain forward { type filter hook forward priority -400; udp dport %d return; mark 0x12340f00 counter; }", overlayPort),
				fmt.Sprintf("chain input { type filter hook input priority -400; udp dport %d return; mark 0x12340f00 counter; }", overlayPort), "}",
			)
		}
		expectAll(t, a, b)
		expectAll(t, b, a)
		survived := 0
		for _, n := range nodes {
			survived += n.counted("marks", "inner")
			for _, chain := range []string{"forward", "input"} {
				if marked := n.counted("marks", chain); marked > 0 {
					t.Errorf("%d packets of the peer have the gateway's mark, in chain %s", marked, chain)
				}
			}
		}
		if survived == 0 {
			t.Error("no mark survived decapsulation: nothing was tested")
		}
	})
}
