package pathtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
)

// idleShare is the share of a core that an idle node's helper may take. On an idle machine it takes 0.06 to 0.09 %, and
// more than the limit if it reads the foreign routes and chains of crowd.
const idleShare = 0.003

// fullPasses is the interval of a helper's full passes.
const fullPasses = 30 * time.Second

// idleWindows is the number of measurements: other work on the machine's cores, such as tests of other packages, makes
// instructions slower, never faster, and delays echoes, for which a gateway renews its tunnel.
const idleWindows = 6

// TestIdle measures helpers that only probe their path, on a node with many foreign objects. With -short, as in a guest
// whose every system call takes longer, it only logs the result.
func TestIdle(t *testing.T) {
	t.Parallel()
	measured := fullPasses + fullPasses/6 // a full pass
	if testing.Short() {
		measured = fullPasses / 3
	}
	_, b, node, gateway := watchedClusters(t)
	ofEach := 100
	if testing.Short() {
		ofEach = 10
	}
	crowd(b.Nodes[0], ofEach)
	node.rest(t)
	most := float64(measured/fullPasses) + 2
	for range idleWindows {
		passes := node.counter(t, passesMetric) // clusters.Outside of the measurement: the request has a cost, too
		before := [2]time.Duration{node.used(t), gateway.used(t)}
		<-time.After(measured)
		share := func(i int, w watched) float64 { return float64(w.used(t)-before[i]) / float64(measured) }
		ofNode, ofGateway := share(0, node), share(1, gateway)
		passes = node.counter(t, passesMetric) - passes
		t.Logf("of a core: node %.3f %%, gateway %.3f %%; %v passes", 100*ofNode, 100*ofGateway, passes)
		if passes <= most && (ofNode <= idleShare || testing.Short()) {
			return
		}
	}
	t.Errorf("in no window of %s at most %v passes and %.2f %% of a core for the node's helper", measured, most, 100*idleShare)
}

// crowd adds foreign objects: a thousand neighbours, addresses, nexthops and nftables chains, and ofEach routes and
// rules for each of these.
func crowd(ns netns.Namespace, ofEach int) {
	var ip, nft strings.Builder
	ip.WriteString("link add crowd type bridge\nlink set crowd up\naddr add 198.18.0.1/15 dev crowd\n")
	nft.WriteString("table ip crowd {\n")
	for i := range 1000 {
		fmt.Fprintf(&ip, "nexthop add id %d dev crowd\n", 1000+i)
		fmt.Fprintf(&ip, "neigh add 198.18.%d.%d lladdr 02:00:00:00:%02x:%02x dev crowd nud permanent\n", 1+i/250, 1+i%250, i/250, i%250)
		fmt.Fprintf(&ip, "addr add 198.19.%d.%d/32 dev crowd\n", 1+i/250, 1+i%250)
		fmt.Fprintf(&nft, "chain c%d {\n", i)
		for j := range ofEach {
			fmt.Fprintf(&ip, "route add 100.%d.%d.%d/32 dev crowd proto 186\n", 64+j, i/250, i%250)
			fmt.Fprintf(&nft, "ip daddr 100.%d.%d.%d counter accept\n", 64+j, i/250, i%250)
		}
		nft.WriteString("}\n")
	}
	nft.WriteString("}\n")
	ns.Feed(ip.String(), "ip", "-batch", "-")
	ns.Feed(nft.String(), "nft", "-f", "-")
}
