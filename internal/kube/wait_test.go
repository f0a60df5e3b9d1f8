package kube_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

type watchInterface = watch.Interface

func hasRecord(all []*corev1.ConfigMap) (string, error) {
	if len(all) == 0 || all[0].Data[records.DataKey] == "" {
		return "no record yet", nil
	}
	return "", nil
}

func TestWaitSeesWhatComesLater(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{fabric("")}})
	api.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
		go func() {
			_, err := api.CoreV1().ConfigMaps("liqonet").Update(t.Context(), fabric("x"), metav1.UpdateOptions{})
			assert.NoError(t, err)
		}()
		return false, nil, nil
	})
	require.NoError(t, kube.Wait(t.Context(), c, kube.Named("fabric"), "the fabric", hasRecord))
}

func TestWaitCountsSelectedOnly(t *testing.T) {
	other := fabric("x")
	other.Name, other.Labels = "other", map[string]string{records.LabelComponent: "ipam"}
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{fabric("x"), other}})
	for _, selection := range []kube.Selection{kube.Named("fabric"), kube.Labelled("liqonet.io/component=fabric")} {
		err := kube.Wait(t.Context(), c, selection, "the fabric", func(all []*corev1.ConfigMap) (string, error) {
			if len(all) != 1 || all[0].Name != "fabric" {
				t.Errorf("%+v selects %d objects", selection, len(all))
			}
			return "", nil
		})
		assert.NoError(t, err)
	}
}

func TestWaitEndsWithWhatItSawLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{fabric("")}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := kube.Wait(ctx, c, kube.Named("fabric"), "the fabric", hasRecord)
		if !errors.As(err, new(*kube.WaitError)) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		if err.Error() != "wait for the fabric: no record yet: context deadline exceeded" {
			t.Errorf("error %v", err)
		}
	})
}

func TestWaitEndsWithTheChecksError(t *testing.T) {
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{})
	broken := errors.New("broken")
	err := kube.Wait(t.Context(), c, kube.Named("fabric"), "the fabric", func([]*corev1.ConfigMap) (string, error) {
		return "", broken
	})
	if !errors.Is(err, broken) || err.Error() != "wait for the fabric: broken" {
		t.Errorf("error %v", err)
	}
}

// A server that is unavailable for a while, or ends a watch, does not end a wait. A server that rejects requests does.
func TestWaitAndTroubledServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, api := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{fabric("x")}})
		lists := 0
		api.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			lists++
			return lists < 3, nil, errors.New("connection refused")
		})
		if err := kube.Wait(t.Context(), c, kube.Named("fabric"), "the fabric", hasRecord); err != nil || lists != 3 {
			t.Errorf("%d lists, %v", lists, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, api := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{fabric("")}})
		api.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
			assert.NoError(t, api.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), fabric("x"), "liqonet"))
			gone := watch.NewFake()
			go gone.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
			return true, gone, nil
		})
		assert.NoError(t, kube.Wait(t.Context(), c, kube.Named("fabric"), "the fabric", hasRecord))
	})
	c, api := fakecluster.NewAPIServer(fakecluster.Config{})
	api.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
	})
	if err := kube.Wait(t.Context(), c, kube.Named("fabric"), "the fabric", hasRecord); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
}

func TestRollouts(t *testing.T) {
	daemonSet := func(generation, observed int64, desired, updated, ready int32) *appsv1.DaemonSet {
		o := &appsv1.DaemonSet{ObjectMeta: ourMeta("node"), Status: appsv1.DaemonSetStatus{
			ObservedGeneration: observed, DesiredNumberScheduled: desired, UpdatedNumberScheduled: updated, NumberReady: ready,
		}}
		o.Generation = generation
		return o
	}
	deployment := func(status appsv1.DeploymentStatus) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: ourMeta("gateway-b"), Status: status}
	}
	failed := []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota",
	}}
	for name, c := range map[string]struct {
		object  runtime.Object
		missing string // "" is a rollout that is done
	}{
		"no daemonset":       {nil, "it does not exist"},
		"daemonset not seen": {daemonSet(2, 1, 2, 2, 2), "its controller has not seen it yet"},
		"daemonset halfway":  {daemonSet(2, 2, 3, 2, 3), "2 of 3 pods up to date, 3 ready"},
		"daemonset unready":  {daemonSet(2, 2, 3, 3, 1), "3 of 3 pods up to date, 1 ready"},
		"daemonset":          {daemonSet(2, 2, 3, 3, 3), ""},
		"deployment old pod": {deployment(appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}), "1 of 1 pods up to date, 1 available, 2 in all"},
		// Perhaps before the cause was removed.
		"deployment failed": {deployment(appsv1.DeploymentStatus{Conditions: failed}), "0 of 1 pods up to date"},
		"deployment":        {deployment(appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}), ""},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			var config fakecluster.Config
			if c.object != nil {
				config.Objects = []runtime.Object{c.object}
			}
			cl, _ := fakecluster.NewAPIServer(config)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			wait := func() error { return cl.WaitDaemonSet(ctx, "node", func() int { return 3 }) }
			if _, ok := c.object.(*appsv1.Deployment); ok {
				wait = func() error { return cl.WaitDeployment(ctx, "gateway-b") }
			}
			err := wait()
			if c.missing == "" && err != nil || c.missing != "" && (err == nil || !strings.Contains(err.Error(), c.missing)) {
				t.Errorf("error %v, want %q", err, c.missing)
			}
		})
	}
}

// TestWaitChecksManyChangesTogether: of many objects that change at once, not every change is checked, but the last one
// is.
func TestWaitChecksManyChangesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1000
		c, api := fakecluster.NewAPIServer(fakecluster.Config{})
		events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: many})
		api.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) { return true, events, nil })
		for i := range many {
			object := fabric("x")
			object.Name = fmt.Sprintf("record-%d", i)
			events.Add(object)
		}
		checks := 0
		err := kube.Wait(t.Context(), c, kube.Selection{}, "records", func(all []*corev1.ConfigMap) (string, error) {
			checks++
			time.Sleep(time.Duration(len(all)) * time.Millisecond) //nolint:forbidigo // synctest's clock
			return map[bool]string{true: "some"}[len(all) < many], nil
		})
		if err != nil || checks > 5 {
			t.Errorf("%d checks, %v", checks, err)
		}
	})
}
