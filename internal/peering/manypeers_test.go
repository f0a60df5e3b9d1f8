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
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// manyPeers is the number of peers in docs/contributing/measurements.md.
var manyPeers = flag.Int("peers", 3, "`NUMBER` of peers that TestConnectManyPeers gives a cluster")

// maxRequests limits the requests of a connect to one of its API servers, independent of the number of peers: 135, and
// some more for waits.
const maxRequests = 200

// TestConnectManyPeers connects a cluster to one peer after the other. A connect makes as many requests for the last
// one as for the first. Time is that of the synctest bubble, in which requests take none.
func TestConnectManyPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fakecluster.New("a",
			fakecluster.Node{Name: "a1", PodCIDR: "10.244.1.0/24", Address: "172.31.1.11"}, fakecluster.Node{Name: "a2", PodCIDR: "10.244.2.0/24", Address: "172.31.1.12"})
		clusters := []*fakecluster.Cluster{a}
		for i := range *manyPeers {
			clusters = append(clusters, fakecluster.New(fmt.Sprintf("p%d", i), fakecluster.Node{Name: "n", PodCIDR: "10.244.1.0/24", Address: fmt.Sprintf("172.31.%d.11", 2+i)}))
		}
		// liqoctl has a client of its own, separate from that of the helpers.
		var requests atomic.Int64
		own, client := *a.Cluster, a.Client()
		client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			requests.Add(1)
			return false, nil, nil
		})
		own.Kube = client
		fakecluster.Run(t, clusters...)
		for i, w := range clusters[1:] {
			begin := time.Now()
			o := connectOptions(a, w)
			o.Local.Cluster = &own
			if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err != nil {
				t.Fatalf("peer %d: %v", i+1, err)
			}
			n := requests.Swap(0)
			t.Logf("peer %d: %v, %d requests", i+1, time.Since(begin), n)
			if n > maxRequests {
				t.Errorf("peer %d: connect made %d requests, want %d at most", i+1, n, maxRequests)
			}
		}
		all, err := a.Kube.CoreV1().ConfigMaps(a.Namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
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
