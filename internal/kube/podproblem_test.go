package kube_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

const fabricPods = "liqonet.io/component=fabric"

func pod(name, node string, status corev1.PodStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: ourMeta(name), Spec: corev1.PodSpec{NodeName: node}, Status: status}
}

func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}

func crashed(message string) corev1.PodStatus {
	status := waiting("CrashLoopBackOff", "back-off 10s restarting failed container")
	status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2, Message: message + "\n"}
	return status
}

func running() corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
}

func TestPodProblem(t *testing.T) {
	unschedulable := corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available",
	}}}
	leaving := pod("a", "n1", waiting("ErrImagePull", "not found"))
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"x/y"}
	refused := func(name, message string, seconds int64) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "liqonet", Name: name}, Reason: "FailedCreate", Message: message,
			InvolvedObject: corev1.ObjectReference{Kind: "DaemonSet", Name: "node"}, LastTimestamp: metav1.Unix(seconds, 0),
		}
	}
	for name, c := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"all well":      {[]runtime.Object{pod("a", "n1", running())}, ""},
		"still coming":  {[]runtime.Object{pod("a", "n1", waiting("ContainerCreating", ""))}, ""},
		"image":         {[]runtime.Object{pod("a", "n1", running()), pod("b", "n2", waiting("ImagePullBackOff", "back-off"))}, "pod b on node n2 cannot start: ImagePullBackOff: back-off"},
		"crash":         {[]runtime.Object{pod("a", "n1", crashed("error: no such flag"))}, "pod a on node n1 cannot start: CrashLoopBackOff: exit code 2: error: no such flag"},
		"unschedulable": {[]runtime.Object{pod("a", "", unschedulable)}, "pod a cannot start: Unschedulable: 0/2 nodes are available"},
		"being deleted": {[]runtime.Object{leaving}, ""},
		"refused":       {[]runtime.Object{refused("1", "old", 1), refused("2", "violates PodSecurity", 2)}, "pod of DaemonSet node cannot start: FailedCreate: violates PodSecurity"},
	} {
		t.Run(name, func(t *testing.T) {
			cl, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: c.objects})
			problem, err := cl.PodProblem(t.Context(), fabricPods)
			require.NoError(t, err)
			got := ""
			if problem != nil {
				got = problem.Error()
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if hint := problem != nil && problem.Hint() != ""; hint != (name == "image" || name == "refused") {
				t.Errorf("hint %v", hint)
			}
		})
	}
}

// forever waits for what does not come.
func forever(c *kube.Cluster) func(context.Context) error {
	return func(ctx context.Context) error {
		return kube.Wait(ctx, c, kube.Named("fabric"), "the fabric", hasRecord)
	}
}

func TestFailFastEndsBeforeTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{pod("a", "n1", crashed("no such flag"))}})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		start := time.Now()
		err := c.FailFast(ctx, fabricPods, forever(c))
		var problem *kube.PodError
		if !errors.As(err, &problem) || problem.Pod != "a" {
			t.Fatalf("error %v", err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestFailFastForgivesWhatPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, api := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{pod("a", "n1", waiting("ErrImagePull", "timeout"))}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.FailFast(ctx, fabricPods, func(ctx context.Context) error {
			synctest.Wait()
			if _, err := api.CoreV1().Pods("liqonet").Update(ctx, pod("a", "n1", running()), metav1.UpdateOptions{}); err != nil {
				return err
			}
			return forever(c)(ctx)
		})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no record yet") {
			t.Errorf("error %v", err)
		}
	})
}

func TestFailFastReturnsWhatTheWaitDoes(t *testing.T) {
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{fabric("x")}})
	assert.NoError(t, c.FailFast(t.Context(), fabricPods, forever(c)))
	broken := errors.New("broken")
	if err := c.FailFast(t.Context(), fabricPods, func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// If the time limit is shorter than the grace period, the error still contains the pod.
func TestFailFastExplainsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{pod("a", "n1", waiting("ErrImagePull", "not found"))}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.FailFast(ctx, fabricPods, forever(c))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, new(*kube.PodError)) {
			t.Errorf("error %v", err)
		}
	})
}

// refusePods reports that pods of a DaemonSet were rejected, at a time, as its controller does.
func refusePods(t *testing.T, api kubernetes.Interface, version, message string) {
	t.Helper()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqonet", Name: "refusal", UID: "refusal", ResourceVersion: version}, Reason: "FailedCreate",
		Message: message, InvolvedObject: corev1.ObjectReference{Kind: "DaemonSet", Name: "node"}, LastTimestamp: metav1.Now(),
	}
	events := api.CoreV1().Events("liqonet")
	if err := events.Delete(t.Context(), event.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	_, err := events.Create(t.Context(), event, metav1.CreateOptions{})
	assert.NoError(t, err)
}

// TestFailFastTellsRefusals: pods that are refused while it waits end the wait, also if there are others; what was
// refused before, or was created after all, does not.
func TestFailFastTellsRefusals(t *testing.T) {
	const quota = `pods "node-" is forbidden: exceeded quota: small`
	for name, c := range map[string]struct {
		again, created bool
		want           string
	}{
		"refused before":     {},
		"refused again":      {again: true, want: "pod of DaemonSet node cannot start: FailedCreate: " + quota},
		"created in the end": {again: true, created: true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			old := pod("other", "n2", running())
			old.CreationTimestamp = metav1.Unix(1, 0)
			cl, api := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{old}})
			refusePods(t, api, "1", "old")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := cl.FailFast(ctx, fabricPods, func(ctx context.Context) error {
				synctest.Wait()
				if c.again {
					refusePods(t, api, "2", quota)
				}
				if c.created {
					late := pod("late", "n1", running())
					late.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Second))
					if _, err := api.CoreV1().Pods("liqonet").Create(ctx, late, metav1.CreateOptions{}); err != nil {
						return err
					}
				}
				return forever(cl)(ctx)
			})
			var problem *kube.PodError
			switch refused := errors.As(err, &problem); {
			case refused != (c.want != ""):
				t.Errorf("error %v, want %q", err, c.want)
			case refused && (problem.Error() != c.want || !strings.Contains(problem.Hint(), "raise the ResourceQuota")):
				t.Errorf("error %v, hint %q", err, problem.Hint())
			}
		})
	}
}
