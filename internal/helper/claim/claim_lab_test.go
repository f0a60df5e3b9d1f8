//go:build lab

package claim

import (
	"fmt"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// Tests of this file need a real API server, from $KUBECONFIG: lab/e2e starts one and runs them.

const (
	labNamespace = "ipam-nodes"
	labNodes     = 1000 // concurrent: seconds on two free cores
)

// labClient returns a client with a helper's limits, one for each node.
func labClient(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(rest.CopyConfig(config))
	require.NoError(t, err)
	return client
}

// TestLabNodes has 1,000 nodes claim their numbers concurrently.
func TestLabNodes(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	require.NoError(t, err)
	nodes := labCluster(t, config)
	clients := make([]*kubernetes.Clientset, labNodes)
	for i := range clients {
		clients[i] = labClient(t, config)
	}
	internal := netip.MustParsePrefix("10.80.0.0/16")
	numbers := make([]int, labNodes)
	claim := func(what string) {
		began := time.Now()
		var all sync.WaitGroup
		for i, node := range nodes {
			all.Go(func() {
				_, n, err := Number(t.Context(), clients[i], labNamespace, node, internal, 0)
				assert.NoError(t, err)
				if numbers[i] > 0 && numbers[i] != n {
					t.Errorf("node %s has %d and then %d", node.Name, numbers[i], n)
				}
				numbers[i] = n
			})
		}
		all.Wait()
		t.Logf("%d nodes %s in %s", labNodes, what, time.Since(began).Round(time.Millisecond))
	}
	claim("claimed their numbers")
	holder := map[int]string{}
	for i, n := range numbers {
		if other, taken := holder[n]; taken || n < 1 || n > records.MaxNodes(internal) {
			t.Errorf("node %s has %d, node %q too", nodes[i].Name, n, other)
		}
		holder[n] = nodes[i].Name
	}
	claim("found them again")
	leases, err := clients[0].CoordinationV1().Leases(labNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: records.LabelNode})
	if err != nil || len(leases.Items) != labNodes {
		t.Errorf("%d Leases, %v; want one a node", len(leases.Items), err)
	}
}

// labCluster creates the nodes, which have no kubelet.
func labCluster(t *testing.T, config *rest.Config) []*corev1.Node {
	t.Helper()
	quick := rest.CopyConfig(config)
	quick.QPS = -1 // no limit
	client := labClient(t, quick)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: labNamespace}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	nodes := make([]*corev1.Node, labNodes)
	turns := make(chan struct{}, 20)
	var all sync.WaitGroup
	for i := range nodes {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("simulated-%d", i)}}
			var err error
			if nodes[i], err = client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return nodes
}
