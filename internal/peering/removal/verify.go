package removal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/setting"
	"liqonet.io/liqonet/templates"
)

// Remains is the liqonet state of a cluster, in the API server and in the kernels of its nodes.
type Remains struct {
	Objects []string      `json:"objects"` // such as "ConfigMap liqonet/fabric", sorted
	Nodes   []NodeRemains `json:"nodes"`   // sorted by name
	// Silent are the nodes that were not verified, as they are not Ready.
	Silent []string `json:"silent,omitempty"`
}

// NodeRemains is the liqonet state in the kernel of a node, one line for each item; none: it is clean.
type NodeRemains struct {
	Name string   `json:"name"`
	Left []string `json:"left,omitempty"`
}

// None reports whether the API server and the verified nodes have no liqonet state.
func (r Remains) None() bool {
	return len(r.Objects) == 0 && !slices.ContainsFunc(r.Nodes, func(n NodeRemains) bool { return len(n.Left) > 0 })
}

// verifyOnly lists the remains in a cluster and removes nothing.
func verifyOnly(ctx context.Context, o ResetOptions, r progress.Reporter) (ResetResult, error) {
	v := &verifier{ResetOptions: o, run: inventory.NewRun()}
	run := &progress.Stages{Reporter: r}
	err := runSized(ctx, run, o.Timeout, []*remover{newRemover(o.Cluster, r)},
		progress.Step{Stage: progress.StageReach, Do: v.reach},
		progress.Step{Stage: progress.StageObjects, Do: v.list},
		progress.Step{Stage: progress.StageProof, Do: v.verifyNodes})
	return ResetResult{Removed: Removed{Context: o.Cluster.Context}, Remains: &v.remains, Stages: run.Times}, err
}

// verifier reads the kernel of every node, even without an installation: it runs a pod on each node, and deletes it
// afterwards. Its writes need no lock.
type verifier struct {
	ResetOptions
	run       string   // the ID with which its objects are annotated
	remove    bool     // remove state from kernels; not while helpers run, which would restore it
	ready     []string // names of Ready nodes
	namespace kube.Object
	set       *appsv1.DaemonSet
	remains   Remains
}

// reach checks the preconditions of a verification, and deletes the pods of an earlier run that was killed.
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
	if v.ready, v.remains.Silent, err = inventory.HelperNodes(ctx, v.Cluster); err != nil {
		return err
	}
	base, err := templates.Base(templates.BaseValues{Namespace: v.Cluster.Namespace, Image: image})
	if err != nil {
		return err
	}
	v.namespace = base[0]
	v.set, err = templates.Verify(templates.VerifyValues{
		Namespace: v.Cluster.Namespace, Image: image, Pods: setting.Over(v.Pods, settings), Remove: v.remove, Run: v.run, Without: v.remains.Silent,
	})
	return err
}

// list finds the remaining objects.
func (v *verifier) list(ctx context.Context) (string, error) {
	objects, err := inventory.Installed(ctx, v.Cluster)
	if err != nil {
		return "", err
	}
	existing, err := v.Cluster.Present(ctx, objects...)
	v.remains.Objects = append([]string{}, existing...)
	slices.Sort(v.remains.Objects)
	return plan.Count(len(existing), "object"), err
}

// verifyNodes runs a pod on every Ready node, and reads its report.
func (v *verifier) verifyNodes(ctx context.Context) (_ string, err error) {
	if err := inventory.AwaitNamespace(ctx, v.Cluster, ""); err != nil {
		return "", err
	}
	changes, err := v.Cluster.Apply(ctx, v.namespace, v.set)
	defer func() {
		if e := v.cleanUp(ctx, changes); err == nil {
			err = e
		}
	}()
	if err != nil {
		return "", err
	}
	err = inventory.AwaitOnNodes(ctx, v.Cluster, v.set, "verification", v.ready, func(pods []*corev1.Pod) (done []string, err error) {
		v.remains.Nodes = reported(pods)
		for _, n := range v.remains.Nodes {
			done = append(done, n.Name)
		}
		return done, nil
	})
	return plan.Count(len(v.remains.Nodes), "node"), err
}

// verifyWithin verifies the nodes in half of the remaining time: the removal continues afterwards.
func (v *verifier) verifyWithin(ctx context.Context) (string, error) {
	if end, limited := ctx.Deadline(); limited {
		half, cancel := context.WithTimeoutCause(ctx, time.Until(end)/2, errors.New("not done within half of the time (--timeout)"))
		defer cancel()
		ctx = half
	}
	return v.verifyNodes(ctx)
}

// cleanUp deletes the objects of the verification, even after its time limit.
func (v *verifier) cleanUp(ctx context.Context, made []kube.Change) error {
	ctx, cancel := progress.Afterwards(ctx)
	defer cancel()
	return progress.Persist(ctx, func(ctx context.Context) error {
		if err := inventory.DeleteOwn[*appsv1.DaemonSet](ctx, v.Cluster, v.set.Name, v.run); err != nil {
			return err
		}
		if len(made) == 0 || made[0].Action != kube.Created {
			return nil
		}
		// Another user may have installed liqonet in the namespace meanwhile.
		others, err := v.Cluster.List(ctx, records.LabelComponent)
		if err != nil || len(others) > 0 {
			return err
		}
		_, err = v.Cluster.Delete(ctx, v.namespace)
		return err
	})
}

// reported reads the reports of pods. A pod that is still running, or has failed, has none.
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
	slices.SortStableFunc(nodes, func(a, b NodeRemains) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}
