package peering

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
)

// ofOneTunnel has the gateways of a peering run as those of a release do that opens one tunnel.
func ofOneTunnel(t *testing.T, w *world, peering string) {
	t.Helper()
	deployments := w.kube.AppsV1().Deployments(w.Namespace)
	d, err := deployments.Get(t.Context(), first(peering).Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	container := &d.Spec.Template.Spec.Containers[0]
	container.Ports = slices.DeleteFunc(container.Ports, func(p corev1.ContainerPort) bool { return strings.HasPrefix(p.Name, "tunnel-") })
	if _, err := deployments.Update(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestGatewaysOfOneTunnel: a peering gets no further gateways, nor temporary ones, while those of either side open one tunnel only.
// An update replaces these, and then it does.
func TestGatewaysOfOneTunnel(t *testing.T) {
	for name, old := range map[string][2]bool{"both": {true, true}, "local": {true, false}, "remote": {false, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, keys := rotated(t, 1, 1)
				for i, w := range []*world{a, b} {
					if old[i] {
						ofOneTunnel(t, w, []string{"b", "a"}[i])
					}
				}
				before := peeringOf(t, a)
				refused := func(what string, err error) {
					t.Helper()
					if err == nil || !strings.Contains(err.Error(), "one tunnel") || !strings.Contains(hint.Of(err), "connect --update") {
						t.Errorf("%s: %v (%s)", what, err, hint.Of(err))
					}
				}
				for _, count := range [][2]int{{2, 1}, {1, 2}} {
					o := gatewayOptions(a, b, count[0], count[1])
					_, err := PlanConnect(t.Context(), o, &recorder{})
					refused("plan", err)
					_, err = Connect(t.Context(), o, &recorder{})
					refused("connect", err)
				}
				_, err := RotateKeys(t.Context(), rotateOptions(a, b), &recorder{})
				refused("rotate-keys", err)
				if diff := cmp.Diff(before, peeringOf(t, a), comparePrefixes()...); diff != "" || !slices.Equal(keys, allKeys(t, a, b)) {
					t.Errorf("the record or keys changed:\n%s", diff)
				}
				begin, r := time.Now(), &recorder{}
				if _, err := Connect(t.Context(), gatewayOptions(a, b, 1, 1), r); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took > replaceTime || !strings.Contains(strings.Join(r.said(), "\n"), "one tunnel") {
					t.Errorf("update took %v, said %q", took, r.said())
				}
				if _, err := Connect(t.Context(), gatewayOptions(a, b, 2, 2), &recorder{}); err != nil {
					t.Fatal(err)
				}
				checkStands(t, a, b, 2, 2)
			})
		})
	}
}
