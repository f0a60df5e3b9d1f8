package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/internal/hint"
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

// became is a change by which that happened.
func (c Change) became(a Action) Change {
	c.Action = a
	return c
}

// Alters reports whether the cluster is another one after the change.
func (c Change) Alters() bool {
	return c.Action == Created || c.Action == Changed || c.Action == Deleted
}

// Apply brings objects into the wanted state by server-side apply, namespaces first and workloads last, in
// parallel otherwise. The changes are in the order of the objects; on an error they tell how far it came.
// Fields that others own and the objects do not name are left alone. An object that exists without liqonet's
// label is an error, except a namespace, which is Kept.
func (c *Cluster) Apply(ctx context.Context, objects ...Object) ([]Change, error) {
	return inWaves(ctx, objects, waveOf, func(ctx context.Context, object Object) (Change, error) {
		return c.put(ctx, object, true)
	})
}

// Complete is Apply to the objects that do not exist. Those that do are left as they are, whatever they say.
func (c *Cluster) Complete(ctx context.Context, objects ...Object) ([]Change, error) {
	return inWaves(ctx, objects, waveOf, func(ctx context.Context, object Object) (Change, error) {
		return c.put(ctx, object, false)
	})
}

// inWaves handles objects wave by wave, those of one wave in parallel. On an error the changes tell how far it came.
func inWaves(ctx context.Context, objects []Object, wave func(Object) int, handle func(context.Context, Object) (Change, error)) ([]Change, error) {
	changes := make([]Change, len(objects))
	for now := range waves {
		err := each(ctx, objects, func(ctx context.Context, i int, object Object) (err error) {
			if wave(object) == now {
				changes[i], err = handle(ctx, object)
			}
			return err
		})
		if err != nil {
			return slices.DeleteFunc(changes, func(c Change) bool { return c.Action == "" }), err
		}
	}
	return changes, nil
}

// each calls f for every item and its index, in parallel. The first error ends it.
func each[T any](ctx context.Context, items []T, f func(ctx context.Context, i int, item T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, item := range items {
		group.Go(func() error { return f(ctx, i, item) })
	}
	return group.Wait()
}

// waves is how many steps Apply has; what a step needs is applied by the steps before it. A pod whose service
// account or ConfigMap is missing would wait for a retry; a binding is refused without its role, to all who may not
// bind any, and without its policy, to all who may not list everything.
const waves = 4

func waveOf(o Object) int {
	switch o.(type) {
	case *corev1.Namespace:
		return 0
	case *rbacv1.RoleBinding, *rbacv1.ClusterRoleBinding, *admissionv1.ValidatingAdmissionPolicyBinding:
		return 2
	case *appsv1.DaemonSet, *appsv1.Deployment:
		return 3
	}
	return 1
}

// put applies an object; without overwrite, only where there is none.
func (c *Cluster) put(ctx context.Context, object Object, overwrite bool) (Change, error) {
	t, err := c.find(ctx, object, object.GetNamespace(), object.GetName())
	switch _, namespace := object.(*corev1.Namespace); {
	case err != nil:
		return Change{}, err
	case t.live == nil:
	case !ours(t.live) && namespace:
		return t.became(Kept), nil
	case !ours(t.live):
		return Change{}, t.foreign()
	case !overwrite:
		return t.became(Unchanged), nil
	}
	return c.send(ctx, t, document(object))
}

// target is an object that is to be changed.
type target struct {
	Change   // its place
	resource resource
	live     Object // nil: there is none
}

// foreign is the error for an object that is not liqonet's, and would be overwritten.
func (t target) foreign() error {
	return hint.With(fmt.Errorf("apply %s: it exists and has no label %s: it is not liqonet's", t.operand(), records.LabelComponent),
		"choose another namespace with --namespace")
}

// at is the place of an object of like's type, which may be a nil pointer. What is there is not read.
func (c *Cluster) at(like Object, namespace, name string) (t target, err error) {
	if c.clusterWide(like) != nil {
		namespace = ""
	}
	t = target{Change: Change{Kind: kindOf(like).Kind, Namespace: namespace, Name: name}}
	t.resource, err = c.resource(like, namespace)
	return t, err
}

// find looks for an object.
func (c *Cluster) find(ctx context.Context, like Object, namespace, name string) (target, error) {
	t, err := c.at(like, namespace, name)
	if err != nil {
		return t, err
	}
	live, err := t.resource.get(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return t, nil
	case err != nil:
		return t, fmt.Errorf("read %s in cluster %q: %w", t.operand(), c.Context, err)
	}
	t.live = live
	return t, nil
}

// send applies an object. The change of one that was there before has what differs.
func (c *Cluster) send(ctx context.Context, t target, fields map[string]any) (Change, error) {
	data, err := json.Marshal(fields)
	if err != nil {
		return Change{}, fmt.Errorf("encode %s: %w", t.operand(), err)
	}
	after, err := t.resource.apply(ctx, t.Name, data)
	switch {
	case err != nil:
		return Change{}, fmt.Errorf("apply %s in cluster %q: %w", t.operand(), c.Context, err)
	case t.live == nil:
		return t.became(Created), nil
	}
	if t.Fields = Differences(t.live, after); len(t.Fields) > 0 {
		return t.became(Changed), nil
	}
	return t.became(Unchanged), nil
}

// ours reports whether an object bears liqonet's label.
func ours(o Object) bool {
	_, labelled := o.GetLabels()[records.LabelComponent]
	return labelled
}

// describe begins a Change.
func describe(o Object) Change {
	return Change{Kind: kindOf(o).Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// document is an object as server-side apply takes it: with its kind, without status, of which liqoctl
// must not become an owner.
func document(o Object) map[string]any {
	fields := fieldsOf(o)
	fields["apiVersion"], fields["kind"] = kindOf(o).ToAPIVersionAndKind()
	delete(fields, "status")
	about := metadata(fields)
	for _, key := range []string{"managedFields", "resourceVersion", "uid"} {
		delete(about, key)
	}
	return fields
}

// fieldsOf is an object of the API as its JSON has it.
func fieldsOf(o Object) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(fmt.Sprintf("%T: %v", o, err)) // no type of the API has a field that cannot be converted
	}
	return fields
}

// metadata is that of an unstructured object, which always has one.
func metadata(fields map[string]any) map[string]any {
	return fields["metadata"].(map[string]any) //nolint:forcetypeassert // see document
}
