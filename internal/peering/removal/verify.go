package removal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// Remains are the liqonet state of a cluster, in the API server and in the kernels of its nodes.
type Remains struct {
	Objects []string      `json:"objects"` // such as "ConfigMap liqonet/fabric", sorted
	Nodes   []NodeRemains `json:"nodes"`   // sorted by name
	// Silent are the nodes that are not Ready and so not verified.
	Silent []string `json:"silent,omitempty"`
}

// NodeRemains are a node and the state in its kernel, a line for each thing; none: nothing.
type NodeRemains struct {
	Name string   `json:"name"`
	Left []string `json:"left,omitempty"`
}

// None reports whether nothing remains in the API server and on the nodes that were verified.
func (r Remains) None() bool {
	return len(r.Objects) == 0 && !slices.ContainsFunc(r.Nodes, func(n NodeRemains) bool { return len(n.Left) > 0 })
}

// verifyOnly lists the remains of a cluster and removes nothing.
func verifyOnly(ctx context.Context, o ResetOptions, r progress.Reporter) (ResetResult, error) {
	v := &verifier{ResetOptions: o, run: inventory.NewRun()}
	run := &progress.Stages{Reporter: r}
	err := sized(ctx, run, o.Timeout, []*leaving{newLeaving(o.Cluster, r)},
		progress.Step{Stage: progress.StageReach, Do: v.reach},
		progress.Step{Stage: progress.StageObjects, Do: v.list},
		progress.Step{Stage: progress.StageProof, Do: v.look})
	return ResetResult{Removed: Removed{Context: o.Cluster.Context}, Remains: &v.found, Stages: run.Times}, err
}

// verifier reads the kernel of every node, even if no object names liqonet any more: for that it runs a pod on each,
// and removes it again. Its writes need no lock.
type verifier struct {
	ResetOptions
	run       string   // names its objects
	remove    bool     // what nodes have left; not while helpers run, which would write it again
	ready     []string // nodes that are
	namespace kube.Object
	set       *appsv1.DaemonSet
	found     Remains
}

// reach refuses what cannot be verified, and removes what an earlier run left that was killed.
func (v *verifier) reach(ctx context.Context) (string, error) {
	if err := v.Cluster.Reach(ctx); err != nil {
		return "", err
	}
	if _, err := inventory.CheckElsewhere(ctx, v.Cluster); err != nil {
		return "", err
	}
	if err := inventory.CheckPermissions(ctx, v.Cluster, templates.Administer); err != nil {
		return "", err
	}
	if err := v.prepare(ctx); err != nil {
		return "", err
	}
	_, err := v.Cluster.Delete(ctx, v.set)
	return v.Cluster.Context, err
}

// prepare renders the pods with the image and the settings of the installation; without one, with those of the options.
func (v *verifier) prepare(ctx context.Context) error {
	installed, err := kube.Find[*appsv1.DaemonSet](ctx, v.Cluster, records.NodeName)
	if err != nil {
		return err
	}
	settings, err := inventory.PodSettings(ctx, v.Cluster)
	if err != nil {
		return err
	}
	image := v.Image
	if installed != nil && len(installed.Spec.Template.Spec.Containers) > 0 {
		image = installed.Spec.Template.Spec.Containers[0].Image
	} else if image == "" {
		return cmp.Or(v.NoImage, errors.New("no image"))
	}
	v.remove = !v.VerifyOnly && (installed == nil || v.Force)
	if v.ready, v.found.Silent, err = inventory.HelperNodes(ctx, v.Cluster); err != nil {
		return err
	}
	base, err := templates.Base(templates.BaseValues{Namespace: v.Cluster.Namespace, Image: image})
	if err != nil {
		return err
	}
	v.namespace = base[0]
	v.set, err = templates.Verify(templates.VerifyValues{
		Namespace: v.Cluster.Namespace, Image: image, Pods: v.Pods.Over(settings), Remove: v.remove, Run: v.run, Without: v.found.Silent,
	})
	return err
}

// list finds the objects that remain.
func (v *verifier) list(ctx context.Context) (string, error) {
	objects, err := inventory.Installed(ctx, v.Cluster)
	if err != nil {
		return "", err
	}
	there, err := v.Cluster.Present(ctx, objects...)
	v.found.Objects = append([]string{}, there...)
	slices.Sort(v.found.Objects)
	return fmt.Sprintf("%d objects", len(there)), err
}

// look runs a pod on every node that is Ready, and reads its report.
func (v *verifier) look(ctx context.Context) (_ string, err error) {
	if err := inventory.AwaitNamespace(ctx, v.Cluster, ""); err != nil {
		return "", err
	}
	changes, err := v.Cluster.Apply(ctx, v.namespace, v.set)
	defer func() {
		if e := v.withdraw(ctx, changes); err == nil {
			err = e
		}
	}()
	if err != nil {
		return "", err
	}
	err = inventory.AwaitOnNodes(ctx, v.Cluster, v.set, "verification", v.ready, func(pods []*corev1.Pod) (done []string, err error) {
		v.found.Nodes = reported(pods)
		for _, n := range v.found.Nodes {
			done = append(done, n.Name)
		}
		return done, nil
	})
	return fmt.Sprintf("%d nodes", len(v.found.Nodes)), err
}

// within verifies the nodes in half of the time that is left: the removal goes on after it.
func (v *verifier) within(ctx context.Context) (string, error) {
	if end, limited := ctx.Deadline(); limited {
		half, cancel := context.WithTimeoutCause(ctx, time.Until(end)/2, errors.New("not done within half of the time (--timeout)"))
		defer cancel()
		ctx = half
	}
	return v.look(ctx)
}

// withdraw removes what the verification has made, also when its time is over.
func (v *verifier) withdraw(ctx context.Context, made []kube.Change) error {
	ctx, cancel := progress.Afterwards(ctx)
	defer cancel()
	return progress.Persist(ctx, func(ctx context.Context) error {
		if err := inventory.DeleteOwn[*appsv1.DaemonSet](ctx, v.Cluster, v.set.Name, v.run); err != nil {
			return err
		}
		if len(made) == 0 || made[0].Action != kube.Created {
			return nil
		}
		// Somebody may have installed liqonet in it meanwhile.
		others, err := v.Cluster.List(ctx, records.LabelComponent)
		if err != nil || len(others) > 0 {
			return err
		}
		_, err = v.Cluster.Delete(ctx, v.namespace)
		return err
	})
}

// reported reads the reports of pods. A pod that has not ended, or has failed, has none.
func reported(pods []*corev1.Pod) []NodeRemains {
	nodes := []NodeRemains{}
	for _, pod := range pods {
		report, ended := inventory.TerminationMessage(pod)
		if !ended {
			continue
		}
		n := NodeRemains{Name: pod.Spec.NodeName}
		for line := range strings.Lines(report) {
			n.Left = append(n.Left, strings.TrimSuffix(line, "\n"))
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b NodeRemains) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}
