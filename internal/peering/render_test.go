package peering

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/kubernetes/scheme"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

func renderOptions(a, b *fakecluster.Cluster) RenderOptions {
	o := RenderOptions{ConnectOptions: connectOptions(a, b), WithSecrets: true}
	o.MTU, o.Overlay, o.NodePort = new(1400), records.VXLAN, new(uint16(30840))
	return o
}

// applyRendered applies manifests as kubectl does.
func applyRendered(t *testing.T, w *fakecluster.Cluster, m Manifests) {
	t.Helper()
	for _, fields := range m.Objects {
		text, err := json.Marshal(fields)
		require.NoError(t, err)
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		require.NoError(t, err)
		_, err = w.Apply(t.Context(), o.(kube.Object))
		require.NoError(t, err)
	}
}

// texts returns manifests as text by kind and name, in their order.
func texts(t *testing.T, m Manifests) (all []string) {
	t.Helper()
	for _, o := range m.Objects {
		text, err := json.Marshal(o)
		require.NoError(t, err)
		all = append(all, string(text))
	}
	return all
}

// TestRenderedPeering: rendered manifests for two empty clusters create the same peering as connect: connect then finds
// nothing to change, and render returns the same.
func TestRenderedPeering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := renderOptions(a, b)
		local, remote, err := Render(t.Context(), o, &fakecluster.Recorder{})
		require.NoError(t, err)
		if left := objectsOf(t, a, b); len(left) > 0 {
			t.Errorf("it wrote %v", left)
		}
		applyRendered(t, a, local)
		applyRendered(t, b, remote)
		changesNothing(t, o.ConnectOptions)
		localAgain, remoteAgain, err := Render(t.Context(), o, &fakecluster.Recorder{})
		require.NoError(t, err)
		assert.Equal(t, "rendered again", append(texts(t, local), texts(t, remote)...), append(texts(t, localAgain), texts(t, remoteAgain)...))
		o.WithSecrets = false
		public, _, err := Render(t.Context(), o, &fakecluster.Recorder{})
		if err != nil || len(public.Objects) != len(local.Objects)-1 || strings.Contains(fmt.Sprint(public), "privateKey") {
			t.Errorf("without secrets: %d of %d objects, %v", len(public.Objects), len(local.Objects), err)
		}
	})
}

func TestRenderListsMissingValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := renderOptions(a, b)
		o.WithSecrets = false
		if _, _, err := Render(t.Context(), o, &fakecluster.Recorder{}); err == nil || !strings.Contains(hint.Of(err), "--with-secrets") {
			t.Errorf("without keys: %v", err)
		}
		o = renderOptions(a, b)
		o.MTU, o.Overlay, o.NodePort = nil, "", nil
		_, _, err := Render(t.Context(), o, &fakecluster.Recorder{})
		if !errors.As(err, new(*progress.InputError)) {
			t.Fatal(err)
		}
		for _, flag := range []string{"--overlay", "--mtu", "--gw-client-address"} {
			if !strings.Contains(err.Error(), flag) {
				t.Errorf("no %s in: %v", flag, err)
			}
		}
	})
}
