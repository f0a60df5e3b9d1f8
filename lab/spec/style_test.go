package spec

import (
	"net/netip"
	"slices"
	"testing"
)

// TestPairwiseMeetsEveryPair wants any two values of different fields together in some style.
func TestPairwiseMeetsEveryPair(t *testing.T) {
	for _, one := range Styles() {
		met := [4][4]bool{}
		for _, s := range Pairwise() {
			a, b := values(one), values(s)
			for i := range a {
				for j := range a {
					met[i][j] = met[i][j] || a[i] == b[i] && a[j] == b[j]
				}
			}
		}
		for i, v := range values(one) {
			for j, w := range values(one) {
				if !met[i][j] {
					t.Errorf("no style has %s and %s", v, w)
				}
			}
		}
	}
}

func values(s Style) [4]string {
	return [4]string{string(s.Masquerade), string(s.PodNetwork), string(s.PodAddresses), "proxy " + string(s.KubeProxy)}
}

func TestStylesAreDifferentAndValid(t *testing.T) {
	all := Styles()
	if len(all) != 24 {
		t.Errorf("%d styles, want 24", len(all))
	}
	for i, s := range all {
		if err := validateStyle(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		if slices.Contains(all[:i], s) {
			t.Errorf("%s twice", s)
		}
	}
}

func TestPoolAddressesBelongToOneNode(t *testing.T) {
	c := Cluster{
		PodCIDR: netip.MustParsePrefix("10.244.0.0/16"), NodeNetwork: netip.MustParsePrefix("172.31.1.0/24"),
		Style: Style{PodAddresses: Pool},
	}
	seen := map[netip.Addr]int{}
	for n := 1; n <= c.MaxNodes(); n++ {
		own := c.PoolAddresses(n)
		if len(own) < 100 {
			t.Errorf("node %d has %d addresses", n, len(own))
		}
		for _, a := range own {
			if other, ok := seen[a]; ok {
				t.Fatalf("%s is node %d's and node %d's", a, other, n)
			}
			seen[a] = n
			if !c.PodCIDR.Contains(a) {
				t.Errorf("node %d: %s is outside %s", n, a, c.PodCIDR)
			}
			for m := 1; m <= c.MaxNodes(); m++ {
				if c.NodePodCIDR(m).Contains(a) {
					t.Fatalf("%s is in the podCIDR of node %d", a, m)
				}
			}
		}
	}
}
