package peering

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/hosts"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/steps"
)

// writeVersion1 gives a peering's record the form of schema version 1.
func writeVersion1(t *testing.T, w *world) {
	t.Helper()
	p := peeringOf(t, w)
	own, tunnel := p.Gateways[0], tunnelOf(p)
	text, err := yaml.Marshal(map[string]any{
		"version": 1, "name": p.Name, "role": p.Role, "local": p.Local, "mtu": p.MTU, "clampMSS": p.ClampMSS, "exposed": p.Exposed,
		"overlayID": own.OverlayID, "gatewayAddress": own.Address,
		"peer": map[string]any{
			"clusterID": p.Peer.ClusterID, "name": p.Peer.Name, "podCIDRs": p.Peer.PodCIDRs, "externalCIDR": p.Peer.ExternalCIDR,
			"publicKey": tunnel.PublicKey,
		},
		"tunnel": map[string]any{
			"implementation": p.Implementation, "address": tunnel.Address, "peerAddress": tunnel.PeerAddress,
			"listenPort": tunnel.ListenPort, "endpoints": tunnel.Endpoints,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	cm, err := w.Kube.CoreV1().ConfigMaps(w.Namespace).Get(t.Context(), records.PeeringName(p.Name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cm.Data[records.DataKey] = string(text)
	if _, err := w.Kube.CoreV1().ConfigMaps(w.Namespace).Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if read := peeringOf(t, w); read.Version != 1 {
		t.Fatalf("read %+v", read)
	}
}

// TestVersion1 upgrades peerings whose records are of schema version 1: with --update only, and to what they were.
func TestVersion1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		before := peeringOf(t, a)
		writeVersion1(t, a)
		writeVersion1(t, b)

		if _, err := hosts.Expose(t.Context(), exposing(a, "198.51.100.7"), &recorder{}); err == nil || !strings.Contains(err.Error(), "schema version 1") ||
			!strings.Contains(hint.Of(err), "network connect --update") {
			t.Errorf("expose: %v", err)
		}
		if held := heldHosts(t, a); len(held) > 0 {
			t.Errorf("the refused command holds %q", held)
		}

		_, err := Connect(t.Context(), connectOptions(a, b), &recorder{})
		differs, ok := errors.AsType[*steps.DifferenceError](err)
		if !ok || !slices.ContainsFunc(differs.Lines, func(line string) bool { return strings.HasSuffix(line, "version: 1 -> 2") }) {
			t.Errorf("without --update: %v", err)
		}
		if p := peeringOf(t, a); p.Version != 1 {
			t.Errorf("written without --update: %+v", p)
		}

		o := connectOptions(a, b)
		o.Update = true
		must(t, Connect, o)
		if p := peeringOf(t, a); !inventory.Same(p, before) {
			t.Errorf("upgraded: %+v, want %+v", p, before)
		}
	})
}
