package peering

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/templates"
)

func rotateOptions(a, b *fakecluster.Cluster) RotateOptions {
	return RotateOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: 10 * time.Minute}
}

// rotated connects two clusters with those numbers of gateways, and returns the public keys of all.
func rotated(t *testing.T, local, remote int) (a, b *fakecluster.Cluster, before []string) {
	t.Helper()
	a, b = fakecluster.RunPair(t)
	fakecluster.Must(t, Connect, gatewayOptions(a, b, local, remote))
	return a, b, allKeys(t, a, b)
}

// allKeys returns the public keys of all gateways of two clusters.
func allKeys(t *testing.T, a, b *fakecluster.Cluster) (keys []string) {
	t.Helper()
	for number := range a.Peering(t).Gateways {
		keys = append(keys, publicKey(t, a, "b", number+1))
	}
	for number := range b.Peering(t).Gateways {
		keys = append(keys, publicKey(t, b, "a", number+1))
	}
	return keys
}

// checkRotated checks that after a rotation exactly the previous gateways exist, with new keys.
func checkRotated(t *testing.T, a, b *fakecluster.Cluster, local, remote int, before []string) {
	t.Helper()
	for _, key := range allKeys(t, a, b) {
		if slices.Contains(before, key) {
			t.Errorf("a gateway has its old key %s", key)
		}
	}
	checkGatewayCounts(t, a, b, local, remote)
}

// checkGatewayCounts checks that those numbers of gateways carry packets, and that none of them is temporary.
func checkGatewayCounts(t *testing.T, a, b *fakecluster.Cluster, local, remote int) {
	t.Helper()
	checkGateways(t, a, b, local, remote)
	checkKeys(t, a, b)
	for _, w := range []*fakecluster.Cluster{a, b} {
		p := w.Peering(t)
		if slices.ContainsFunc(p.Gateways, func(g records.LocalGateway) bool { return g.Temporary }) {
			t.Errorf("cluster %s: a gateway is temporary: %+v", w.Context, p.Gateways)
		}
		for _, id := range p.GatewayIDs() {
			if works, err := w.HasAllTunnels(t.Context(), id, &p); !works {
				t.Errorf("gateway %s of cluster %s has no tunnel: %v", id, w.Context, err)
			}
		}
	}
}

// guardOthers rejects that a gateway ends, because it is deleted or gets other keys, while none of the others has a
// tunnel.
func guardOthers(t *testing.T, w *fakecluster.Cluster, peering string) {
	w.Fake.PrependReactor("*", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := newKeys(t, w, action)
		if deletion, is := action.(clienttesting.DeleteActionImpl); is {
			name = deletion.Name
		}
		if name == "" {
			return false, nil, nil
		}
		others := slices.DeleteFunc(records.GatewayIDs(peering, records.MaxGateways), func(id records.GatewayID) bool { return id.Name() == name })
		if !slices.ContainsFunc(others, w.HasTunnel) {
			t.Errorf("cluster %s: %s goes while no other gateway has a tunnel", w.Context, name)
		}
		return false, nil, nil
	})
}

// newKeys returns the name of the existing Deployment that an action gives other keys; "": none.
func newKeys(t *testing.T, w *fakecluster.Cluster, action clienttesting.Action) string {
	patch, is := action.(clienttesting.PatchActionImpl)
	object, err := w.Fake.Tracker().Get(action.GetResource(), w.Namespace, patch.Name)
	if !is || err != nil {
		return ""
	}
	var d appsv1.Deployment
	assert.NoError(t, json.Unmarshal(patch.Patch, &d))
	if d.Spec.Template.Annotations[templates.AnnotationKey] == object.(*appsv1.Deployment).Spec.Template.Annotations[templates.AnnotationKey] {
		return ""
	}
	return patch.Name
}

// keepsOldPod keeps the pod of a gateway that gets other keys, because it is on a lost node.
func keepsOldPod(t *testing.T, w *fakecluster.Cluster, id records.GatewayID) {
	w.Fake.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if newKeys(t, w, action) != id.Name() {
			return false, nil, nil
		}
		object, err := w.Fake.Tracker().Get(action.GetResource(), w.Namespace, id.Name())
		if err != nil {
			return true, nil, err
		}
		now, template := metav1.Now(), object.(*appsv1.Deployment).Spec.Template
		return false, nil, w.Fake.Tracker().Add(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: id.Name() + "-lost", Namespace: w.Namespace, Labels: template.Labels, Annotations: template.Annotations, DeletionTimestamp: &now},
			Spec:       corev1.PodSpec{NodeName: "lost"},
		})
	})
}

func TestRotateKeys(t *testing.T) {
	t.Parallel()
	for _, count := range [][2]int{{1, 1}, {2, 2}, {1, 3}} {
		bubble.Run(t, fmt.Sprintf("%d and %d gateways", count[0], count[1]), func(t *testing.T) {
			a, b, before := rotated(t, count[0], count[1])
			preshared, err := inventory.ReadKeys(t.Context(), a.Cluster, fakecluster.FirstGateway("b"))
			require.NoError(t, err)
			begun := time.Now().Truncate(time.Second)
			records := [2]records.Peering{a.Peering(t), b.Peering(t)}
			guardOthers(t, a, "b")
			guardOthers(t, b, "a")
			got := fakecluster.Must(t, RotateKeys, rotateOptions(a, b))
			checkRotated(t, a, b, count[0], count[1], before)
			if k, err := inventory.ReadKeys(t.Context(), a.Cluster, fakecluster.FirstGateway("b")); err != nil || k.Created.Before(begun) {
				t.Errorf("the new key is of %s (%v), before %s", k.Created, err, begun)
			}
			if len(got.Gateways) != count[0]+count[1] || got.Peer != "b" || got.Gateways[0].PublicKey != publicKey(t, a, "b", 1) {
				t.Errorf("result %+v", got)
			}
			now, err := inventory.ReadKeys(t.Context(), a.Cluster, fakecluster.FirstGateway("b"))
			if err != nil || now.Preshared() != preshared.Preshared() {
				t.Errorf("the preshared key is another one: %v", err)
			}
			for i, w := range []*fakecluster.Cluster{a, b} { // the rest of the peering does not change
				was, is := records[i], w.Peering(t)
				for g := range was.Gateways {
					for k := range was.Gateways[g].Tunnels {
						was.Gateways[g].Tunnels[k].Driver = is.Gateways[g].Tunnels[k].Driver
					}
				}
				if !inventory.Same(was, is) {
					t.Errorf("cluster %s: the record was %+v, is %+v", w.Context, was, is)
				}
			}
		})
	}
}

// TestInterruptedRotation: a rotation can be killed at any write. Both connect and another rotation complete the
// peering, and a gateway is never removed while no other one carries its packets.
func TestInterruptedRotation(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 2} {
		for next, run := range map[string]func(*testing.T, *fakecluster.Cluster, *fakecluster.Cluster) error{
			"connect": func(t *testing.T, a, b *fakecluster.Cluster) error {
				o := unchangedOptions(a, b)
				o.Update = true
				_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
				return err
			},
			"rotate": func(t *testing.T, a, b *fakecluster.Cluster) error {
				_, err := RotateKeys(t.Context(), rotateOptions(a, b), &fakecluster.Recorder{})
				return err
			},
		} {
			total := 0
			for n := 0; n <= total; n += 1 + total/5 { // 0 only counts writes
				bubble.Run(t, fmt.Sprintf("%d gateways, write%02d, %s", count, n, next), func(t *testing.T) {
					a, b, before := rotated(t, count, count)
					total = max(total, killedAt(t, n, a, b, doing(RotateKeys, rotateOptions(a, b))))
					a.Set(func() { guardOthers(t, a, "b"); a.Interval = time.Second })
					b.Set(func() { guardOthers(t, b, "a"); b.Interval = time.Second })
					require.NoError(t, run(t, a, b))
					if next == "rotate" {
						checkRotated(t, a, b, count, count, before)
					} else {
						checkGatewayCounts(t, a, b, count, count)
					}
				})
			}
			if total < 10 {
				t.Errorf("only %d writes seen", total)
			}
		}
	}
}

// TestTwoRotations: of two rotations in parallel, one waits for the other.
func TestTwoRotations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b, before := rotated(t, 2, 2)
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := RotateKeys(t.Context(), rotateOptions(a, b), &fakecluster.Recorder{})
				errs <- err
			}()
		}
		for _, err := range []error{<-errs, <-errs} {
			if err != nil {
				t.Errorf("one of two: %v", err)
			}
		}
		fakecluster.Must(t, RotateKeys, rotateOptions(a, b))
		checkRotated(t, a, b, 2, 2, before)
	})
}

// TestRotationRefused: a rotation fails without a peering, and if the remote cluster is not the named peer.
func TestRotationRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		if _, err := RotateKeys(t.Context(), rotateOptions(a, b), &fakecluster.Recorder{}); err == nil {
			t.Error("rotated without a peering")
		}
		fakecluster.Must(t, Connect, connectOptions(a, b))
		o := rotateOptions(a, b)
		o.Peer = "c"
		_, err := RotateKeys(t.Context(), o, &fakecluster.Recorder{})
		if _, input := errors.AsType[*progress.InputError](err); !input {
			t.Errorf("peer c: %v", err)
		}
	})
}

// TestRotationPlan: a plan lists the changes of a rotation, and changes nothing.
func TestRotationPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, before := rotated(t, 1, 2)
		r := &fakecluster.Recorder{}
		plan, err := PlanRotateKeys(t.Context(), rotateOptions(a, b), r)
		require.NoError(t, err)
		got := plan.Clusters[0].String() + plan.Clusters[1].String()
		for _, want := range []string{
			"change Secret peering-b", "change Secret peering-a", "change Secret peering2-a",
			"change Deployment gateway-b", "metadata.annotations.liqonet.io/key: \"" + keyOf(t, a, "b") + "\" -> known after apply", "change Deployment gateway2-a",
			"gateways[0].tunnels[1].tunnel.wireguard.publicKey: \"" + publicKey(t, b, "a", 2) + "\" -> known after apply",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("plan without %q:\n%s", want, got)
			}
		}
		if strings.Contains(got, "gateway2-b") || !strings.Contains(r.Output(), `cluster "a": a second gateway`) {
			t.Errorf("temporary gateway in the plan, or not among the notes:\n%s\n%s", got, r.Lines())
		}
		if now := allKeys(t, a, b); !slices.Equal(now, before) {
			t.Errorf("keys were %s, are %s", before, now)
		}
	})
}

// TestRotationOnLostNode: a gateway with a pod that does not terminate keeps its key. If the pod's node is lost later,
// the command ends with an error while the second gateway carries packets.
func TestRotationOnLostNode(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *fakecluster.Cluster){
		"before": func(t *testing.T, w *fakecluster.Cluster) {
			old := metav1.NewTime(time.Now().Add(-time.Minute))
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "gateway-b-lost", Namespace: w.Namespace, Labels: fakecluster.FirstGateway("b").Identity(records.ComponentGateway).Labels(),
				DeletionTimestamp: &old, Finalizers: []string{"test/lost"},
			}, Spec: corev1.PodSpec{NodeName: "a2"}}
			require.NoError(t, w.Fake.Tracker().Add(pod))
		},
		"meanwhile": func(t *testing.T, w *fakecluster.Cluster) { keepsOldPod(t, w, fakecluster.FirstGateway("b")) },
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b, before := rotated(t, 1, 1)
			lose(t, a)
			a.Set(func() { a.Interval = slowly })
			b.Set(func() { b.Interval = slowly })
			start := time.Now()
			_, err := RotateKeys(t.Context(), rotateOptions(a, b), &fakecluster.Recorder{})
			if err == nil || !strings.Contains(err.Error(), "does not end") || hint.Of(err) == "" {
				t.Errorf("error %v, hint %q", err, hint.Of(err))
			}
			if took := time.Since(start); took > 2*time.Minute {
				t.Errorf("it took %s", took)
			}
			if now := publicKey(t, a, "b", 1); name == "before" && now != before[0] {
				t.Error("the key is another one")
			}
			// A pod that does not terminate may be under foreign control: the peer accepts only the key in the
			// Secret.
			if accepted := acceptedKey(t, tunnelOf(b.Peering(t))); accepted != publicKey(t, a, "b", 1) {
				t.Error("the peer accepts another key than the new one")
			}
			if second := (records.GatewayID{Peering: "b", Number: 2}); !a.HasTunnel(second) {
				t.Error("the second gateway carries nothing")
			}
		})
	}
}

// TestTemporaryGateway: connect without --update keeps the second gateway of an interrupted rotation; with it, connect
// removes the gateway.
func TestTemporaryGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := rotated(t, 1, 1)
		r := newRotation(rotateOptions(a, b), &fakecluster.Recorder{})
		require.NoError(t, steps(t, r.reach, r.prepare))
		o := connectOptions(a, b)
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		if _, differs := errors.AsType[*plan.DifferenceError](err); !differs || !strings.Contains(err.Error(), "temporary") {
			t.Errorf("error %v", err)
		}
		if n := len(a.Peering(t).Gateways); n != 2 {
			t.Errorf("%d gateways", n)
		}
		o.Update = true
		fakecluster.Must(t, Connect, o)
		checkGatewayCounts(t, a, b, 1, 1)
	})
}

// TestRotationWithoutRecord: a rotation whose record is deleted meanwhile ends, and does not create it again.
func TestRotationWithoutRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := rotated(t, 1, 1)
		r := newRotation(rotateOptions(a, b), &fakecluster.Recorder{})
		require.NoError(t, steps(t, r.reach, r.prepare))
		removeObject(t, a, "configmaps", "peering-b")
		_, err := r.replaceAll(t.Context())
		assert.ErrorContains(t, "replaceAll", err, "has no peering")
	})
}

// TestRotationWithoutInstallation: clusters whose DaemonSets are missing are not mistaken for the same one.
func TestRotationWithoutInstallation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := rotated(t, 1, 1)
		for _, w := range []*fakecluster.Cluster{a, b} {
			require.NoError(t, w.Fake.AppsV1().DaemonSets(w.Namespace).Delete(t.Context(), records.NodeName, metav1.DeleteOptions{}))
		}
		_, err := newRotation(rotateOptions(a, b), &fakecluster.Recorder{}).reach(t.Context())
		require.NoError(t, err)
	})
}

// TestRotationWithoutReplacement: while a gateway with the old key cannot be replaced, the peer's record keeps that
// key, and the next run replaces the gateway.
func TestRotationWithoutReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, before := rotated(t, 1, 1)
		refused := false
		a.Fake.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if refused || newKeys(t, a, action) == "" {
				return false, nil, nil
			}
			refused = true
			return true, nil, errors.New("refused")
		})
		if _, err := RotateKeys(t.Context(), rotateOptions(a, b), &fakecluster.Recorder{}); err == nil {
			t.Fatal("a gateway that was not replaced has a new key")
		}
		if accepted := acceptedKey(t, tunnelOf(b.Peering(t))); accepted != before[0] {
			t.Error("the peer does not accept the key of the gateway that runs")
		}
		fakecluster.Must(t, RotateKeys, rotateOptions(a, b))
		checkRotated(t, a, b, 1, 1, before)
	})
}
