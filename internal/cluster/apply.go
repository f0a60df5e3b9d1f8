package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/internal/records"
)

// parallel is how many requests Apply, Delete and the permission checks have on the way at once.
const parallel = 16

// Action is what happened to an object, or would.
type Action string

// The actions. Kept is a namespace of someone else's: it is used, and neither labelled nor deleted.
const (
	Created   Action = "created"
	Changed   Action = "changed"
	Unchanged Action = "unchanged"
	Deleted   Action = "deleted"
	Absent    Action = "absent"
	Kept      Action = "kept"
)

// Change is one object and what happened to it.
type Change struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Action    Action `json:"action"`
	// Fields are the differences of a changed object, such as
	// `spec.template.spec.containers[0].image: "a" -> "b"`. Values of Secrets are left out.
	Fields []string `json:"fields,omitempty"`
}

// String is such as "created ConfigMap liqonet/fabric".
func (c Change) String() string {
	return fmt.Sprintf("%s %s", c.Action, c.operand())
}

// operand names the object in messages: "ConfigMap liqonet/fabric".
func (c Change) operand() string {
	name := c.Name
	if c.Namespace != "" {
		name = c.Namespace + "/" + name
	}
	return c.Kind + " " + name
}

// Alters reports whether the cluster is another one after the change.
func (c Change) Alters() bool {
	return c.Action == Created || c.Action == Changed || c.Action == Deleted
}

// ForeignError says that an object of liqonet's would overwrite one that is not liqonet's.
type ForeignError struct{ Object string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("apply %s: it exists and has no label %s: it is not liqonet's", e.Object, records.LabelComponent)
}

// Hint says how to get out of the way.
func (e *ForeignError) Hint() string { return "choose another namespace with --namespace" }

// Apply brings objects into the wanted state by server-side apply, namespaces first and workloads last, in
// parallel otherwise. The changes are in the order of the objects; on an error they tell how far it came.
// Fields that others own and the objects do not name are left alone. An object that exists without liqonet's
// label is a *ForeignError, except a namespace, which is Kept.
func (c *Cluster) Apply(ctx context.Context, objects ...Object) ([]Change, error) {
	return inWaves(ctx, objects, waveOf, func(ctx context.Context, object Object) (Change, error) {
		return c.put(ctx, object, apply)
	})
}

// Complete is Apply to the objects that do not exist. Those that do are left as they are, whatever they say.
func (c *Cluster) Complete(ctx context.Context, objects ...Object) ([]Change, error) {
	return inWaves(ctx, objects, waveOf, func(ctx context.Context, object Object) (Change, error) {
		return c.put(ctx, object, complete)
	})
}

// mode is what put does.
type mode int

const (
	apply mode = iota
	complete
)

// inWaves handles objects wave by wave, those of one wave in parallel. On an error the changes tell how far it came.
func inWaves(ctx context.Context, objects []Object, wave func(Object) int, handle func(context.Context, Object) (Change, error)) ([]Change, error) {
	changes := make([]Change, len(objects))
	for now := range waves {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(parallel)
		for i, object := range objects {
			if wave(object) != now {
				continue
			}
			group.Go(func() error {
				var err error
				changes[i], err = handle(ctx, object)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return done(changes), err
		}
	}
	return changes, nil
}

// waves is how many steps Apply has; what a step needs is applied by the steps before it. A pod whose service
// account or ConfigMap is missing would wait for a retry; a binding is refused without its role, to all who may not
// bind any.
const waves = 4

func waveOf(o Object) int {
	switch o.(type) {
	case *corev1.Namespace:
		return 0
	case *rbacv1.RoleBinding, *rbacv1.ClusterRoleBinding:
		return 2
	case *appsv1.DaemonSet, *appsv1.Deployment:
		return 3
	}
	return 1
}

// done returns the changes that were decided.
func done(changes []Change) []Change {
	var some []Change
	for _, change := range changes {
		if change.Action != "" {
			some = append(some, change)
		}
	}
	return some
}

// put applies an object.
func (c *Cluster) put(ctx context.Context, object Object, m mode) (Change, error) {
	r, change, err := c.begin(object)
	if err != nil {
		return Change{}, err
	}
	before, err := r.get(ctx, object.GetName())
	switch {
	case apierrors.IsNotFound(err):
		before, change.Action = nil, Created
	case err != nil:
		return Change{}, fmt.Errorf("read %s in cluster %q: %w", operand(object), c.Context, err)
	case !ours(before):
		if change.Kind == "Namespace" {
			change.Action = Kept
			return change, nil
		}
		return Change{}, &ForeignError{Object: operand(object)}
	default:
		change.Action = Unchanged
		if m == complete {
			return change, nil
		}
	}
	fields, err := document(object)
	if err != nil {
		return Change{}, fmt.Errorf("encode %s: %w", operand(object), err)
	}
	return c.send(ctx, r, fields, before, change)
}

// send applies an object. The change of one that was there before gets what differs.
func (c *Cluster) send(ctx context.Context, r resource, fields map[string]any, before Object, change Change) (Change, error) {
	data, err := json.Marshal(fields)
	if err != nil {
		return Change{}, fmt.Errorf("encode %s: %w", change.operand(), err)
	}
	after, err := r.apply(ctx, change.Name, data)
	if err != nil {
		return Change{}, fmt.Errorf("apply %s in cluster %q: %w", change.operand(), c.Context, err)
	}
	if before == nil {
		return change, nil
	}
	if change.Fields, err = Differences(before, after); err != nil {
		return Change{}, fmt.Errorf("compare %s: %w", change.operand(), err)
	}
	if len(change.Fields) > 0 {
		change.Action = Changed
	}
	return change, nil
}

// ours reports whether an object bears liqonet's label.
func ours(o Object) bool {
	_, labelled := o.GetLabels()[records.LabelComponent]
	return labelled
}

// describe begins a Change.
func describe(o Object) (Change, error) {
	gvk, err := kindOf(o)
	if err != nil {
		return Change{}, err
	}
	return Change{Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}, nil
}

// begin returns the client for an object, and the beginning of its Change.
func (c *Cluster) begin(o Object) (resource, Change, error) {
	change, err := describe(o)
	if err != nil {
		return nil, Change{}, err
	}
	r, err := c.resource(o, o.GetNamespace())
	return r, change, err
}

// document is an object as server-side apply takes it: with its kind, without status, of which liqoctl
// must not become an owner.
func document(o Object) (map[string]any, error) {
	gvk, err := kindOf(o)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = gvk.ToAPIVersionAndKind()
	delete(fields, "status")
	about, ok := fields["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("no metadata")
	}
	for _, key := range []string{"managedFields", "resourceVersion", "uid"} {
		delete(about, key)
	}
	return fields, nil
}
