//go:build linux

package node

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops"
)

// comparable makes cmp compare addresses.
var comparable = cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{}, netip.AddrPort{})

// hostileTexts are possible contents of a gateway's objects.
func hostileTexts(t *testing.T) []string {
	other := sample.Peering()
	other.Peer.PodCIDRs, other.Peer.ExternalCIDRs = []records.Mapping{sample.Mapping("0.0.0.0/1", "0.0.0.0/1")}, []records.Mapping{sample.Mapping("128.0.0.0/1", "128.0.0.0/1")}
	fabric := sample.Fabric()
	fabric.InternalCIDRs, fabric.ExternalCIDRs = parsed.Prefixes("172.31.0.0/16"), parsed.Prefixes("172.30.0.0/16")
	documents := []records.Document{fabric, other, sample.SecondPeering(), sample.Gateway(), sample.Status()}
	for _, ip := range []string{"10.244.2.9", "10.244.1.5", "172.31.0.1", "172.31.1.10", "10.12.0.1", "255.255.255.255", "127.0.0.1", "0.0.0.0"} {
		g := sample.Gateway()
		g.PodIP = netip.MustParseAddr(ip)
		documents = append(documents, g)
		g.Pod, g.Node = sample.SecondGateway().Pod, sample.SecondGateway().Node
		documents = append(documents, g)
	}
	g := sample.Gateway()
	g.Endpoint = netip.MustParseAddrPort("10.12.3.4:51840") // in the ranges of c
	g.PeerNodes = parsed.Addresses("10.72.0.3", "172.31.1.10", "10.71.0.3")
	documents = append(documents, g)
	texts := []string{"", "x", "version: 1\n", "version: 2\n", "version: 3\n", strings.Repeat("y", 1<<16)}
	for _, d := range documents {
		text, err := records.Draft(d)
		require.NoError(t, err)
		texts = append(texts, text)
	}
	return texts
}

// TestGatewayObjectsConcernTheirPeering checks that the two objects of a gateway, whatever they contain, do not affect
// fabric, guard and other peerings on nodes.
func TestGatewayObjectsConcernTheirPeering(t *testing.T) {
	t.Parallel()
	second := sample.SecondPeering()
	others := []*corev1.ConfigMap{
		sample.FabricMap(t, sample.Fabric()), sample.PeeringMap(t, sample.Peering()), sample.PeeringMap(t, second), sample.GatewayMap(t, "c", sample.SecondGateway()),
	}
	want := viewOf(t, others...)
	if _, ok := want.gateways[sample.FirstGateway("c")]; !ok || len(want.Peerings) != 2 {
		t.Fatalf("without them: %+v", want)
	}
	components := []string{
		"", records.ComponentFabric, records.ComponentIPAM, records.ComponentPeering, records.ComponentGateway, records.ComponentStatus, records.ComponentNode,
	}
	for _, name := range []string{sample.FirstGateway("b").Name(), sample.FirstGateway("b").StatusName()} {
		for _, component := range components {
			for _, peering := range []string{"", "b", "c", "fabric", "d"} {
				for i, text := range hostileTexts(t) {
					hostile := &corev1.ConfigMap{Data: map[string]string{records.DataKey: text, "fabric": text}}
					hostile.Name, hostile.Namespace = name, sample.Namespace
					hostile.Labels = map[string]string{records.LabelComponent: component, records.LabelPeering: peering}
					hostile.Annotations = map[string]string{records.AnnotationNode: text}
					got := viewOf(t, append(slices.Clone(others), hostile)...)
					if err := concernsOnlyB(want, got); err != nil {
						t.Errorf("%s as %s of %q with text %d: %v", name, component, peering, i, err)
					}
				}
			}
		}
	}
}

// concernsOnlyB compares the states of two views, except for the path of peering b.
func concernsOnlyB(want, got view) error {
	gateways := maps.Clone(got.gateways)
	delete(gateways, sample.FirstGateway("b"))
	wanted := maps.Clone(want.gateways)
	delete(wanted, sample.FirstGateway("b"))
	if diff := cmp.Diff(wanted, gateways, comparable); diff != "" {
		return fmt.Errorf("gateways (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{want.fabric, want.Peerings}, []any{got.fabric, got.Peerings}, comparable); diff != "" {
		return fmt.Errorf("records (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.ranges(), got.ranges(), comparable); diff != "" {
		return fmt.Errorf("ranges (-want +got):\n%s", diff)
	}
	internal := netip.MustParseAddr("10.80.0.7")
	for _, step := range netops.Diff(want.state(internal), got.state(internal)).Steps {
		guard := step.Kind() != "firewall" && strings.Contains(step.String(), "unreachable")
		if text := step.String(); strings.Contains(text, "10.12.") || strings.Contains(text, "10.72.") || strings.Contains(text, "10.80.128.16") || guard {
			return fmt.Errorf("step %s", text)
		}
	}
	return nil
}
