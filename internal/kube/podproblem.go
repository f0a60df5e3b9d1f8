package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// problemGrace is the time after which FailFast gives up because of a problem. Shorter problems are those of a
// scheduler that has not seen a new node yet, or of a registry.
const problemGrace = 5 * time.Second

// PodError is the reason why a pod cannot start.
type PodError struct {
	Pod     string
	Node    string // "": on none yet
	Reason  string // as Kubernetes names it, such as ImagePullBackOff
	Message string
	Lasts   bool // for some seconds already
	// Workload is the name of the Deployment or DaemonSet of a pod that was not created; "" for pods that exist.
	Workload string
}

func (e *PodError) Error() string {
	where := ""
	if e.Node != "" {
		where = " on node " + e.Node
	}
	return fmt.Sprintf("pod %s%s cannot start: %s: %s", e.Pod, where, e.Reason, e.Message)
}

// Hint returns the remedy for images that cannot be pulled and for rejected pods; "" for other reasons.
func (e *PodError) Hint() string {
	if slices.Contains(imageReasons, e.Reason) {
		return "the nodes must be able to get the image: see liqoctl image push, liqoctl image save and --image"
	}
	if e.Reason == failedCreate {
		return refusalHint(e.Message)
	}
	return ""
}

// imageReasons are the reasons for which a container waits that have to do with its image.
var imageReasons = []string{
	"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable",
}

// stuckReasons are the reasons for which a container waits that do not pass by themselves.
var stuckReasons = slices.Concat(imageReasons, []string{
	"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError",
})

// PodProblem returns the first pod in liqonet's namespace that a label selector matches and that cannot start; nil if
// all can. If there are no pods, it returns the reason why none was created.
func (c *Cluster) PodProblem(ctx context.Context, selector string) (*PodError, error) {
	pods, err := All[*corev1.Pod](ctx, c, selector)
	if err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		events, err := c.refusals(ctx)
		problem, _ := newestRefusal(events)
		return problem, err
	}
	for _, pod := range pods {
		if problem := ProblemOf(pod); problem != nil {
			return problem, nil
		}
	}
	return nil, nil
}

// Refusals returns why pods were not created, of each workload the newest reason.
func (c *Cluster) Refusals(ctx context.Context) ([]*PodError, error) {
	events, err := c.refusals(ctx)
	byWorkload := make(map[string][]corev1.Event)
	for _, e := range events {
		name := workload(e)
		byWorkload[name] = append(byWorkload[name], e)
	}
	var all []*PodError
	for _, events := range byWorkload {
		problem, _ := newestRefusal(events)
		all = append(all, problem)
	}
	return all, err
}

// ProblemOf returns why a pod cannot start; nil if no reason is known.
func ProblemOf(pod *corev1.Pod) *PodError {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	problem := &PodError{Pod: pod.Name, Node: pod.Spec.NodeName}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			problem.Reason, problem.Message = condition.Reason, condition.Message
			return problem
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil || !slices.Contains(stuckReasons, waiting.Reason) {
			continue
		}
		problem.Reason, problem.Message = waiting.Reason, waiting.Message
		if last := status.LastTerminationState.Terminated; last != nil {
			problem.Message = fmt.Sprintf("exit code %d: %s", last.ExitCode, strings.TrimSpace(last.Message))
		}
		return problem
	}
	return nil
}

// FailFast runs a wait and ends it when a pod that the label selector matches has been unable to start for
// some seconds, or refused; the error is then a *PodError. If the wait times out, its error also has the reason why
// pods cannot start, if there is one.
func (c *Cluster) FailFast(ctx context.Context, selector string, wait func(context.Context) error) error {
	first := func(problems []*PodError) *PodError {
		if i := slices.IndexFunc(problems, func(p *PodError) bool { return p.Lasts }); i >= 0 {
			return problems[i]
		}
		return nil
	}
	return c.FailWhen(ctx, selector, first, wait)
}

// FailWhen is FailFast for waits that go on without some pods. judge is called after every change with the
// pods that cannot start, sorted by name; it returns the error that ends the wait, or nil.
func (c *Cluster) FailWhen(ctx context.Context, selector string, judge func([]*PodError) *PodError, wait func(context.Context) error) error {
	if c.dry != nil {
		return wait(ctx)
	}
	watched, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { c.watchProblems(watched, selector, judge, cancel) })
	watching.Go(func() { c.watchRefusals(watched, selector, cancel) })
	err := wait(watched)
	problem, stuck := errors.AsType[*PodError](context.Cause(watched))
	cancel(nil)
	watching.Wait()
	switch {
	case err == nil:
		return nil
	case stuck:
		return problem
	case errors.Is(err, context.DeadlineExceeded):
		return c.explain(ctx, selector, err)
	}
	return err
}

// explain adds the reason why pods cannot start to the error of a wait that timed out.
func (c *Cluster) explain(ctx context.Context, selector string, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachTimeout)
	defer cancel()
	if problem, _ := c.PodProblem(ctx, selector); problem != nil {
		return fmt.Errorf("%w: %w", err, problem)
	}
	return err
}

// problemCheck is the interval at which the age of problems is checked.
const problemCheck = time.Second

// watchProblems gives up with a problem that outlasts the grace, as judge decides. Without permission to watch pods,
// the wait lasts until its timeout.
func (c *Cluster) watchProblems(ctx context.Context, selector string, judge func([]*PodError) *PodError, giveUp context.CancelCauseFunc) {
	since := make(map[string]time.Time) // by pod
	for pods, err := range Watch[*corev1.Pod](ctx, c, Selection{Labels: selector, Every: problemCheck}) {
		if err != nil {
			continue
		}
		var problems []*PodError
		before := since
		since = make(map[string]time.Time)
		for _, pod := range pods {
			problem := ProblemOf(pod)
			if problem == nil {
				continue
			}
			first, known := before[pod.Name]
			if !known {
				first = time.Now()
			}
			since[pod.Name], problem.Lasts = first, time.Since(first) >= problemGrace
			problems = append(problems, problem)
		}
		if problem := judge(problems); problem != nil {
			giveUp(problem)
		}
	}
}
