package peering

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/records"
)

// manyPeers: 64 are in docs/limits.md.
var manyPeers = flag.Int("peers", 3, "`NUMBER` of peers that TestConnectManyPeers gives a cluster")

// maxRequests are those of a connect to one of its API servers, whatever peers there are: 135, and some more where it
// waits.
const maxRequests = 200

// TestConnectManyPeers connects a cluster to one peer after the other. A connect makes as many requests for the last as
// for the first. Time is that of the bubble: requests take none.
func TestConnectManyPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newWorld("a",
			worldNode{name: "a1", podCIDR: "10.244.1.0/24", address: "172.31.1.11"}, worldNode{name: "a2", podCIDR: "10.244.2.0/24", address: "172.31.1.12"})
		worlds := []*world{a}
		for i := range *manyPeers {
			worlds = append(worlds, newWorld(fmt.Sprintf("p%d", i), worldNode{name: "n", podCIDR: "10.244.1.0/24", address: fmt.Sprintf("172.31.%d.11", 2+i)}))
		}
		// The client of liqoctl, beside that of the helpers.
		var requests atomic.Int64
		own, client := *a.Cluster, fake.NewSimpleClientset()
		client.ReactionChain, client.WatchReactionChain, client.Resources = a.kube.ReactionChain, a.kube.WatchReactionChain, a.kube.Resources
		client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			requests.Add(1)
			return false, nil, nil
		})
		own.Kube = client
		live(t, worlds...)
		for i, w := range worlds[1:] {
			begin := time.Now()
			o := connectOptions(a, w)
			o.Local.Cluster = &own
			if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
				t.Fatalf("peer %d: %v", i+1, err)
			}
			n := requests.Swap(0)
			t.Logf("peer %d: %v, %d requests", i+1, time.Since(begin), n)
			if n > maxRequests {
				t.Errorf("peer %d: connect made %d requests, want %d at most", i+1, n, maxRequests)
			}
		}
		all, err := a.Kube.CoreV1().ConfigMaps(a.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, cm := range all.Items {
			sum += cm.Size()
			if cm.Name == records.IPAMName || cm.Name == records.PeeringName("p0") || cm.Name == records.FabricName {
				t.Logf("ConfigMap %s: %d bytes", cm.Name, cm.Size())
			}
		}
		t.Logf("%d ConfigMaps: %d bytes", len(all.Items), sum)
	})
}
