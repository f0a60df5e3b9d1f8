package removal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/steps"
	"liqonet.io/liqonet/templates"
)

// SweepOptions are the options of Sweep.
type SweepOptions struct {
	Cluster *cluster.Cluster
	Image   string
	Pods    templates.Pods // what it leaves open is as in the installation, if there is one
	Remove  bool           // what nodes have left
	Timeout time.Duration  // for all of it; 0: none
}

// SweepResult says what a cluster has of liqonet's.
type SweepResult struct {
	Objects []string    `json:"objects"` // such as "ConfigMap liqonet/fabric", sorted
	Nodes   []NodeSwept `json:"nodes"`   // sorted by name
	// Silent are the nodes that are not Ready, of which nothing is known.
	Silent []string          `json:"silent,omitempty"`
	Stages []steps.StageTime `json:"stages"`
}

// NodeSwept is a node and what its kernel has, a line for each thing; none: nothing.
type NodeSwept struct {
	Name string   `json:"name"`
	Left []string `json:"left,omitempty"`
}

// Clean reports whether nothing is left, and every node was looked at.
func (r SweepResult) Clean() bool {
	dirty := func(n NodeSwept) bool { return len(n.Left) > 0 }
	return len(r.Objects)+len(r.Silent) == 0 && !slices.ContainsFunc(r.Nodes, dirty)
}

// Sweep looks at a cluster for everything of liqonet's, in the API server and in the kernel of every node, whatever
// became of the objects that tell of it. For that it runs a pod on each node, and removes it again. With Remove the
// nodes' kernels are emptied, which is refused while liqonet is installed: see Reset.
func Sweep(ctx context.Context, o SweepOptions, r steps.Reporter) (SweepResult, error) {
	ctx, cancel := steps.Within(ctx, o.Timeout)
	defer cancel()
	s := &sweeper{SweepOptions: o, run: inventory.NewRun()}
	run := steps.Stages{Reporter: r}
	if err := run.Run(ctx, steps.Step{Stage: steps.StageReach, Do: s.reach}, steps.Step{Stage: steps.StageObjects, Do: s.list}, steps.Step{Stage: steps.StageNodes, Do: s.look}); err != nil {
		return SweepResult{}, err
	}
	s.result.Stages = run.Times
	return s.result, nil
}

// sweeper is a sweep on its way.
type sweeper struct {
	SweepOptions
	run       string   // its name
	ready     []string // nodes that are
	namespace cluster.Object
	set       *appsv1.DaemonSet // of the pods that look
	result    SweepResult
}

// reach finds out whether it may be done, and removes what an earlier sweep left that was killed.
func (s *sweeper) reach(ctx context.Context) (string, error) {
	if err := s.Cluster.Reach(ctx); err != nil {
		return "", err
	}
	others, err := inventory.CheckElsewhere(ctx, s.Cluster)
	if err != nil {
		return "", err
	}
	if err := steps.CheckPermissions(ctx, s.Cluster, templates.Administer); err != nil {
		return "", err
	}
	if err := inventory.AwaitNamespace(ctx, s.Cluster, ""); err != nil {
		return "", err
	}
	if err := s.render(ctx); err != nil {
		return "", err
	}
	if s.Remove {
		if err := s.refuseInstalled(ctx, others); err != nil {
			return "", err
		}
	}
	_, err = s.Cluster.Delete(ctx, s.set)
	return s.Cluster.Context, err
}

// refuseInstalled refuses to empty kernels that helpers keep in order, of this namespace or of others: these would fill
// them again. A fabric that cannot be read is one, too.
func (s *sweeper) refuseInstalled(ctx context.Context, others []string) error {
	if len(others) > 0 {
		return &inventory.ElsewhereError{Context: s.Cluster.Context, Namespace: s.Cluster.Namespace, Installed: others[0]}
	}
	there, err := s.Cluster.Present(ctx, &corev1.ConfigMap{ObjectMeta: inventory.Meta(s.Cluster.Namespace, records.FabricName)})
	if err != nil || len(there) == 0 {
		return err
	}
	return hint.With(fmt.Errorf("liqonet is installed in cluster %q", s.Cluster.Context), "liqoctl network reset")
}

// render renders the objects of the look itself.
func (s *sweeper) render(ctx context.Context) error {
	standing, err := inventory.PodSettings(ctx, s.Cluster)
	if err != nil {
		return err
	}
	if s.ready, s.result.Silent, err = inventory.HelperNodes(ctx, s.Cluster); err != nil {
		return err
	}
	base, err := templates.Base(templates.BaseValues{Namespace: s.Cluster.Namespace, Image: s.Image})
	if err != nil {
		return err
	}
	s.namespace = base[0]
	s.set, err = templates.Sweep(templates.SweepValues{
		Namespace: s.Cluster.Namespace, Image: s.Image, Pods: s.Pods.Over(standing), Remove: s.Remove, Run: s.run, Without: s.result.Silent,
	})
	return err
}

// list finds the objects that are left.
func (s *sweeper) list(ctx context.Context) (string, error) {
	objects, err := inventory.Installed(ctx, s.Cluster)
	if err != nil {
		return "", err
	}
	there, err := s.Cluster.Present(ctx, objects...)
	s.result.Objects = append([]string{}, there...)
	slices.Sort(s.result.Objects)
	return fmt.Sprintf("%d objects", len(there)), err
}

// look runs a pod on every node that is Ready, and reads what it found.
func (s *sweeper) look(ctx context.Context) (_ string, err error) {
	changes, err := s.Cluster.Apply(ctx, s.namespace, s.set)
	defer func() {
		if e := s.withdraw(ctx, changes); err == nil {
			err = e
		}
	}()
	if err != nil {
		return "", err
	}
	err = inventory.AwaitOnNodes(ctx, s.Cluster, s.set, "a look", s.ready, func(pods []*corev1.Pod) (done []string, err error) {
		s.result.Nodes = swept(pods)
		for _, n := range s.result.Nodes {
			done = append(done, n.Name)
		}
		return done, nil
	})
	return fmt.Sprintf("%d nodes", len(s.result.Nodes)), err
}

// withdraw removes what the look has made, also when its time is over.
func (s *sweeper) withdraw(ctx context.Context, made []cluster.Change) error {
	ctx, cancel := steps.Afterwards(ctx)
	defer cancel()
	return steps.Persist(ctx, func(ctx context.Context) error {
		if err := inventory.DeleteOwn[*appsv1.DaemonSet](ctx, s.Cluster, s.set.Name, s.run); err != nil {
			return err
		}
		if len(made) == 0 || made[0].Action != cluster.Created {
			return nil
		}
		// Somebody may have installed liqonet in it meanwhile.
		others, err := s.Cluster.List(ctx, records.LabelComponent)
		if err != nil || len(others) > 0 {
			return err
		}
		_, err = s.Cluster.Delete(ctx, s.namespace)
		return err
	})
}

// swept reads what pods that have looked say. Without having looked a pod says nothing that counts.
func swept(pods []*corev1.Pod) []NodeSwept {
	nodes := []NodeSwept{}
	for _, pod := range pods {
		report, ended := inventory.Reported(pod)
		if !ended {
			continue
		}
		n := NodeSwept{Name: pod.Spec.NodeName}
		for line := range strings.Lines(report) {
			n.Left = append(n.Left, strings.TrimSuffix(line, "\n"))
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b NodeSwept) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}
