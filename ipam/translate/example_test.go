package translate_test

import (
	"fmt"
	"log"
	"net/netip"
	"os"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/ipam/translate"
)

// decode reads the records from files. A program with a client reads them from ConfigMaps "fabric" and "peering-b".
func decode() translate.Cluster {
	fabric, err := os.ReadFile("testdata/fabric.yaml")
	if err != nil {
		log.Fatal(err)
	}
	peering, err := os.ReadFile("testdata/peering-b.yaml")
	if err != nil {
		log.Fatal(err)
	}
	cluster, err := translate.Decode(string(fabric), map[string]string{"peering-b": string(peering)})
	if err != nil {
		log.Fatal(err)
	}
	return cluster
}

// A virtual kubelet reports the address by which this cluster reaches a pod that runs in peer b.
func ExampleTranslator_Import() {
	b, err := decode().Peer("b")
	if err != nil {
		log.Fatal(err)
	}
	pod, err := b.Import(netip.MustParseAddr("10.244.1.7"))
	fmt.Println(pod.Translated, pod.Kind, err)
	// Output: 10.71.1.7 pod <nil>
}

// Peer b reaches addresses of this cluster by these translations.
func ExampleTranslator_Export() {
	b, err := decode().Peer("b")
	if err != nil {
		log.Fatal(err)
	}
	for _, local := range []string{"10.244.1.7", "10.80.0.3", "192.0.2.1"} {
		a, err := b.Export(netip.MustParseAddr(local))
		fmt.Println(a.Translated, a.Kind, err)
	}
	// Output:
	// 10.72.1.7 pod <nil>
	// 10.82.0.3 node <nil>
	// invalid IP  translate 192.0.2.1: not an address of this cluster that peer "b" can reach
}

// An access log contains a source address. Whose returns the peer to which it belongs.
func ExampleCluster_Whose() {
	a, err := decode().Whose(netip.MustParseAddr("10.81.0.3"))
	fmt.Println(a.Peer, a.Kind, a.Translated, err)
	// Output: b node 10.70.0.3 <nil>
}

// A controller mirrors an EndpointSlice to peer b.
func ExampleEndpointSlice() {
	b, err := decode().Peer("b")
	if err != nil {
		log.Fatal(err)
	}
	here := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-7xk2p", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.244.1.7"}}},
	}
	there, err := translate.EndpointSlice(here, b.Export)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(there.Endpoints[0].Addresses, there.Labels)
	// Output: [10.72.1.7] map[endpointslice.kubernetes.io/managed-by:liqonet.io kubernetes.io/service-name:web]
}
