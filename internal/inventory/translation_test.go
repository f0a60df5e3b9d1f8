package inventory_test

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam/translate"
)

// TestTranslationAgrees: the addresses that one cluster of a peering exports are those that the other one imports.
func TestTranslationAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.Pair()
		if _, err := inventory.Translation(t.Context(), a.Cluster); err == nil || !strings.Contains(hint.Of(err), "connect") {
			t.Errorf("not installed: %v", err)
		}
		fakecluster.Run(t, a, b)
		fakecluster.Must(t, peering.Connect, connected.Options(a, b))
		inA, inB := translatorOf(t, a, "b"), translatorOf(t, b, "a")
		for _, text := range []string{"10.244.1.7", "10.70.0.9", "10.70.200.1"} {
			real := netip.MustParseAddr(text)
			for _, way := range []struct{ from, to translate.Translator }{{inA, inB}, {inB, inA}} {
				exported, err := way.from.Export(real)
				require.NoError(t, err)
				imported, err := way.to.Import(real)
				if err != nil || imported.Translated != exported.Translated || imported.Kind != exported.Kind {
					t.Errorf("%s: exported as %+v, imported as %+v, %v", real, exported, imported, err)
				}
			}
		}
	})
}

// TestMissingMappingsAreCompleted connects clusters whose records do not contain the mappings at the peer: the hint of
// the error is the solution.
func TestMissingMappingsAreCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := connected.Options(a, b)
		fakecluster.Must(t, peering.Connect, o)
		p := a.Peering(t)
		p.Local = records.Local{}
		text, err := records.Encode(p)
		require.NoError(t, err)
		object := &corev1.ConfigMap{ObjectMeta: inventory.Meta(a.Namespace, records.PeeringName("b")), Data: map[string]string{records.DataKey: text}}
		_, err = a.Fake.CoreV1().ConfigMaps(a.Namespace).Update(t.Context(), object, metav1.UpdateOptions{})
		require.NoError(t, err)
		pod := netip.MustParseAddr("10.244.1.7")
		if _, err := translatorOf(t, a, "b").Export(pod); !strings.Contains(hint.Of(err), "connect --update") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
		o.Update = true
		fakecluster.Must(t, peering.Connect, o)
		if got, err := translatorOf(t, a, "b").Export(pod); err != nil || got.Translated != netip.MustParseAddr("10.71.1.7") {
			t.Errorf("completed: %+v, %v", got, err)
		}
	})
}

// TestDamagedRecordsAreIsolated: a damaged record of one peering does not affect translations for the other peer.
func TestDamagedRecordsAreIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		fakecluster.Must(t, peering.Connect, connected.Options(a, b))
		spoilt := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: records.PeeringName("c"), Labels: map[string]string{records.LabelComponent: records.ComponentPeering}},
			Data:       map[string]string{records.DataKey: "version: 7\n"},
		}
		_, err := a.Fake.CoreV1().ConfigMaps(a.Namespace).Create(t.Context(), spoilt, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = translatorOf(t, a, "b").Import(netip.MustParseAddr("10.244.1.7"))
		assert.NoError(t, err)
		c, err := inventory.Translation(t.Context(), a.Cluster)
		require.NoError(t, err)
		_, err = c.Peer("c")
		assert.ErrorContains(t, "peer", err, "ConfigMap peering-c")
	})
}

func translatorOf(t *testing.T, w *fakecluster.Cluster, peer string) translate.Translator {
	t.Helper()
	c, err := inventory.Translation(t.Context(), w.Cluster)
	require.NoError(t, err)
	tr, err := c.Peer(peer)
	require.NoError(t, err)
	return tr
}
