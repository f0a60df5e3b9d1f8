package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// failedCreate is the reason of events for pods that a controller could not create.
const failedCreate = "FailedCreate"

// combined is the message prefix of an event that client-go aggregated from similar ones.
const combined = "(combined from similar events): "

// refusalPause is the interval between reads of the events.
const refusalPause = time.Second

// refusalHints are the hints for pods that were not created, by a part of the API server's message.
var refusalHints = []struct{ words, hint string }{
	{"violates PodSecurity", "pods of liqonet need the level privileged (host network, CAP_NET_ADMIN): " +
		"kubectl label --overwrite namespace NAMESPACE pod-security.kubernetes.io/enforce=privileged"},
	{"insufficient quota to match these scopes", "allow this priority class in the namespace by a ResourceQuota, or choose another one with --priority-class"},
	{"exceeded quota", "raise the ResourceQuota, lower --requests and --limits, or use another namespace with --namespace"},
	{"failed quota", "set what the ResourceQuota requires with --requests and --limits"},
	{"no PriorityClass with name", "create the PriorityClass, or choose another one with --priority-class"},
	{"security context constraint", "allow the ServiceAccounts of liqonet the host network and CAP_NET_ADMIN by SecurityContextConstraints"},
	{"denied", "exempt the namespace of liqonet from the policy that rejects its pods"},
}

// refusalHint returns the hint for a pod that was not created; "" if there is none.
func refusalHint(message string) string {
	for _, h := range refusalHints {
		if strings.Contains(message, h.words) {
			return h.hint
		}
	}
	return ""
}

// refusals returns the events in liqonet's namespace for pods that were not created.
func (c *Cluster) refusals(ctx context.Context) ([]corev1.Event, error) {
	events, err := c.Kube.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + failedCreate})
	if err != nil {
		return nil, fmt.Errorf("list events in namespace %s of cluster %q: %w", c.Namespace, c.Context, err)
	}
	return slices.DeleteFunc(events.Items, func(e corev1.Event) bool { return e.Reason != failedCreate }), nil
}

// newestRefusal returns the problem in the newest event, and its time; nil if there are no events.
func newestRefusal(events []corev1.Event) (*PodError, time.Time) {
	if len(events) == 0 {
		return nil, time.Time{}
	}
	newest := slices.MaxFunc(events, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	owner := newest.InvolvedObject
	return &PodError{
		Pod: "of " + owner.Kind + " " + owner.Name, Workload: workload(newest), Reason: newest.Reason, Message: strings.TrimPrefix(newest.Message, combined),
	}, newest.LastTimestamp.Time
}

// workload returns the name of the Deployment or DaemonSet of which a pod was not created. A ReplicaSet has the name of
// its Deployment and a hash.
func workload(e corev1.Event) string {
	name := e.InvolvedObject.Name
	if i := strings.LastIndexByte(name, '-'); e.InvolvedObject.Kind == "ReplicaSet" && i > 0 {
		return name[:i]
	}
	return name
}

// watchRefusals gives up when the creation of pods that match the label selector is rejected for some seconds. It
// ignores earlier events: a user who has removed the cause runs the same command again, and controllers retry. Without
// permission to read events, the wait lasts until its timeout.
func (c *Cluster) watchRefusals(ctx context.Context, selector string, giveUp context.CancelCauseFunc) {
	before, err := c.refusals(ctx)
	if err != nil {
		return
	}
	known := make(map[types.UID]string, len(before))
	for _, e := range before {
		known[e.UID] = e.ResourceVersion
	}
	tick := time.NewTicker(refusalPause)
	defer tick.Stop()
	var since time.Time // time of the first rejection
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			switch problem := c.refusal(ctx, selector, known); {
			case problem == nil:
				since = time.Time{}
			case since.IsZero():
				since = now
			case now.Sub(since) >= problemGrace:
				giveUp(problem)
				return
			}
		}
	}
}

// refusal returns the reason why the newest pod was rejected, if it is not known yet and no pod was created since; nil
// otherwise.
func (c *Cluster) refusal(ctx context.Context, selector string, known map[types.UID]string) *PodError {
	events, err := c.refusals(ctx)
	if err != nil {
		return nil //nolint:nilerr // retried shortly
	}
	problem, at := newestRefusal(slices.DeleteFunc(events, func(e corev1.Event) bool { return known[e.UID] == e.ResourceVersion }))
	if problem == nil {
		return nil
	}
	pods, err := All[*corev1.Pod](ctx, c, selector)
	created := func(p *corev1.Pod) bool { return !p.CreationTimestamp.Time.Before(at) }
	if err != nil || slices.ContainsFunc(pods, created) {
		return nil //nolint:nilerr // as above
	}
	return problem
}
