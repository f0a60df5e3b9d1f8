//go:build linux

package node

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops"
)

// guardLoop returns a node's helper before its first pass. listing answers its lists of ConfigMaps; nil: the fake API
// server does.
func guardLoop(t *testing.T, listing func(clienttesting.ListActionImpl) (*corev1.ConfigMapList, error), objects ...runtime.Object) *loop {
	t.Helper()
	client := fake.NewClientset(objects...)
	if listing != nil {
		client.PrependReactor("list", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
			list, err := listing(a.(clienttesting.ListActionImpl))
			return true, list, err
		})
	}
	return &loop{Helper: Helper{Env: helper.Env{Client: client, Namespace: sample.Namespace, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}, Name: "n1"}}
}

// relabelled returns a gateway's record with the labels of a peering's.
func relabelled(t *testing.T) *corev1.ConfigMap {
	cm := sample.GatewayMap(t, "b", sample.Gateway())
	cm.Labels = sample.PeeringMap(t, sample.Peering()).Labels
	return cm
}

func apiServerAt(address string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: apiServerSlice, Namespace: corev1.NamespaceDefault}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
}

func namesOf(o objects) (names []string) {
	for _, cm := range slices.Concat([]*corev1.ConfigMap{o.fabric, o.ipam}, o.maps) {
		if cm != nil {
			names = append(names, cm.Name)
		}
	}
	return names
}

// TestTrusted checks that the first pass reads all pages of the objects that only liqoctl writes, and drops others by
// their names, as well as texts that are too long. A failed list is retried.
func TestTrusted(t *testing.T) {
	t.Parallel()
	long := sample.PeeringMap(t, sample.SecondPeering())
	long.Data[records.DataKey] += "# " + strings.Repeat("x", records.MaxSize(records.ComponentPeering))
	pages := map[string]*corev1.ConfigMapList{
		"":  {Items: []corev1.ConfigMap{*sample.FabricMap(t, sample.Fabric()), *relabelled(t), *sample.PeeringMap(t, sample.Peering())}},
		"2": {Items: []corev1.ConfigMap{*long}},
		"3": {Items: []corev1.ConfigMap{*sample.Reserved(t)}},
	}
	pages[""].Continue, pages["2"].Continue = "2", "3"
	failed := false
	l := guardLoop(t, func(a clienttesting.ListActionImpl) (*corev1.ConfigMapList, error) {
		if a.ListOptions.Limit == 0 {
			t.Error("a list without a limit")
		}
		if a.ListOptions.Continue == "3" && !failed {
			failed = true
			return &corev1.ConfigMapList{}, errors.New("connection refused")
		}
		return pages[a.ListOptions.Continue], nil
	})
	o, err := l.trusted(t.Context())
	if want := []string{records.FabricName, records.IPAMName, "peering-b", "peering-c"}; err != nil || !slices.Equal(namesOf(o), want) || !failed {
		t.Fatalf("read %v (%v), want %v", namesOf(o), err, want)
	}
	if text := o.maps[1].Data[records.DataKey]; text != cache.TooLong {
		t.Errorf("a text of %d bytes", len(text))
	}
}

// TestFirstPass checks that the first pass guards the ranges of peerings that will be served, of others, and of
// reservations whose record is damaged or missing. Ranges with an address of the node, or of the fabric's own ranges,
// are not guarded, and neither are those with an address of the API server, even if the helper itself has connected to
// its Service only: without the API server, a node would never remove the guard.
func TestFirstPass(t *testing.T) {
	t.Parallel()
	third, overlapping := sample.SecondPeering(), sample.SecondPeering()
	third.Name = "third"
	overlapping.Name, overlapping.Peer.PodCIDRs = "d", []records.Mapping{sample.Mapping("10.244.0.0/16", "10.244.0.0/16")}
	b, c := sample.Peering().Seen(), sample.SecondPeering().Seen()
	fabric, first, second := sample.FabricMap(t, sample.Fabric()), sample.PeeringMap(t, sample.Peering()), sample.PeeringMap(t, sample.SecondPeering())
	const elsewhere = "192.0.2.1/24"
	bare := sample.Fabric()
	bare.NodeNetworks = nil
	apiServer := apiServerAt(b[0].Addr().Next().String())
	for name, test := range map[string]struct {
		objects []runtime.Object
		address string // of the node
		want    []netip.Prefix
	}{
		"nothing":                      {nil, elsewhere, nil},
		"records alone":                {[]runtime.Object{fabric, first, second}, elsewhere, slices.Concat(b, c)},
		"no fabric":                    {[]runtime.Object{first}, elsewhere, b},
		"reservations alone":           {[]runtime.Object{sample.Reserved(t, sample.Peering(), sample.SecondPeering())}, elsewhere, slices.Concat(b, c)},
		"two that want the same":       {[]runtime.Object{fabric, second, sample.PeeringMap(t, third)}, elsewhere, c},
		"the cluster's own ranges":     {[]runtime.Object{fabric, first, sample.PeeringMap(t, overlapping)}, elsewhere, slices.Concat(b, c[1:])},
		"an address of the node's":     {[]runtime.Object{fabric, first, second}, b[0].Addr().Next().String() + "/24", slices.Concat(b[1:], c)},
		"the API server, no fabric":    {[]runtime.Object{apiServer, first}, elsewhere, b[1:]},
		"the API server, no networks":  {[]runtime.Object{apiServer, sample.FabricMap(t, bare), first, second}, elsewhere, slices.Concat(b[1:], c)},
		"the API server, reserved":     {[]runtime.Object{apiServer, sample.Reserved(t, sample.Peering(), sample.SecondPeering())}, elsewhere, slices.Concat(b[1:], c)},
		"a record that is a gateway's": {[]runtime.Object{fabric, relabelled(t), sample.Reserved(t, sample.Peering())}, elsewhere, b},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, kernel := sample.OpenKernel(t)
			ns.IP("link add v0 type veth peer name v1")
			ns.IP("addr add " + test.address + " dev v0")
			l := guardLoop(t, nil, test.objects...)
			l.Kernel = kernel
			// From an earlier process.
			internal := netops.State{Addresses: []netops.Address{{Link: "lo", Prefix: netip.MustParsePrefix("10.80.0.7/32")}}}
			require.NoError(t, l.Kernel.Apply(netops.Diff(netops.State{}, internal)))
			for range 2 { // a process, and the next one
				l.forgotten, l.begun = nil, false
				require.NoError(t, ns.Do(func() error { return l.guard(t.Context()) }))
			}
			have, err := l.Kernel.Observe()
			require.NoError(t, err)
			want := netops.GuardState(test.want)
			want.Addresses = internal.Addresses
			if rest := netops.Diff(have, want); !rest.Empty() {
				t.Errorf("to the guard there is still to do:\n%s", rest)
			}
		})
	}
}

// TestFirstPassOfUnclaimed checks that the first pass completes the guard of ranges that only the kernel has: a
// peering's record is damaged, nothing is reserved for it, and another program removed the table.
func TestFirstPassOfUnclaimed(t *testing.T) {
	t.Parallel()
	damaged := sample.PeeringMap(t, sample.Peering())
	damaged.Data[records.DataKey] = "damaged"
	ns, kernel := sample.OpenKernel(t)
	l := guardLoop(t, nil, sample.FabricMap(t, sample.Fabric()), sample.Reserved(t), damaged)
	l.Kernel = kernel
	want := netops.GuardState(sample.Peering().Seen())
	require.NoError(t, kernel.Apply(netops.Diff(netops.State{}, want)))
	ns.Run("nft", "delete", "table", "ip", netops.Table)
	require.NoError(t, ns.Do(func() error { return l.guard(t.Context()) }))
	have, err := kernel.Observe()
	require.NoError(t, err)
	if rest := netops.Diff(have, want); !rest.Empty() {
		t.Errorf("to the guard there is still to do:\n%s", rest)
	}
}
