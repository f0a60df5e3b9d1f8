package peering

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"liqonet.io/liqonet/ipam/translate"
)

// TestTranslationAgrees asks both clusters of a connection: what one exports is what the other imports.
func TestTranslationAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		if _, err := Translation(t.Context(), a.Cluster); err == nil || !strings.Contains(hintOf(err), "connect") {
			t.Errorf("not installed: %v", err)
		}
		live(t, a, b)
		if _, err := Connect(t.Context(), connectOptions(a, b), &recorder{}); err != nil {
			t.Fatal(err)
		}
		inA, inB := translatorOf(t, a, "b"), translatorOf(t, b, "a")
		for _, text := range []string{"10.244.1.7", "10.70.0.9", "10.70.200.1"} {
			real := netip.MustParseAddr(text)
			for _, way := range []struct{ from, to translate.Translator }{{inA, inB}, {inB, inA}} {
				exported, err := way.from.Export(real)
				if err != nil {
					t.Fatal(err)
				}
				imported, err := way.to.Import(real)
				if err != nil || imported.Translated != exported.Translated || imported.Kind != exported.Kind {
					t.Errorf("%s: exported as %+v, imported as %+v, %v", real, exported, imported, err)
				}
			}
		}
	})
}

func translatorOf(t *testing.T, w *world, peer string) translate.Translator {
	t.Helper()
	c, err := Translation(t.Context(), w.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := c.Peer(peer)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}
