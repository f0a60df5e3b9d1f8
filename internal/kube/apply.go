package kube

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

// parallel is the maximum number of concurrent requests of Apply, Delete and the permission checks.
const parallel = 16

// Action is the effect of an operation on an object, made or planned.
type Action string

// The actions. Kept is for a namespace that liqonet did not create: it is used, but neither labelled nor deleted.
const (
	Created   Action = "created"
	Changed   Action = "changed"
	Unchanged Action = "unchanged"
	Deleted   Action = "deleted"
	Absent    Action = "absent"
	Kept      Action = "kept"
)

// Change is an object and the action on it.
type Change struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Action    Action `json:"action"`
	// Fields are the differences of a changed object. Values of Secrets are omitted.
	Fields []FieldChange `json:"fields,omitempty"`
}

// String returns a text such as "created ConfigMap liqonet/fabric".
func (c Change) String() string {
	return fmt.Sprintf("%s %s", c.Action, c.operand())
}

// operand returns the object for messages: "ConfigMap liqonet/fabric".
func (c Change) operand() string {
	name := c.Name
	if c.Namespace != "" {
		name = c.Namespace + "/" + name
	}
	return c.Kind + " " + name
}

// became returns the change with that action.
func (c Change) became(a Action) Change {
	c.Action = a
	return c
}

// Alters reports whether the change modifies the cluster.
func (c Change) Alters() bool {
	return c.Action == Created || c.Action == Changed || c.Action == Deleted
}

// Apply applies the desired state of objects by server-side apply, namespaces first and workloads last, otherwise in
// parallel. The changes have the order of the objects; on an error they contain the changes made so far. Fields of
// other owners that are not in the objects are left unchanged. An existing object without liqonet's label is an error,
// except a namespace, which is Kept.
func (c *Cluster) Apply(ctx context.Context, objects ...Object) ([]Change, error) {
	return inWaves(ctx, objects, waveOf, func(ctx context.Context, object Object) (Change, error) {
		return c.put(ctx, object, true)
	})
}

// Complete applies the objects that do not exist. It leaves existing ones unchanged, whatever their contents.
func (c *Cluster) Complete(ctx context.Context, objects ...Object) ([]Change, error) {
	return inWaves(ctx, objects, waveOf, func(ctx context.Context, object Object) (Change, error) {
		return c.put(ctx, object, false)
	})
}

// inWaves handles objects wave by wave, those of one wave in parallel. On an error it returns the changes made so far.
func inWaves(ctx context.Context, objects []Object, wave func(Object) int, handle func(context.Context, Object) (Change, error)) ([]Change, error) {
	changes := make([]Change, len(objects))
	for now := range waves {
		err := Each(ctx, objects, func(ctx context.Context, i int, object Object) (err error) {
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

// Each calls f for every item and its index, in parallel. It stops at the first error.
func Each[T any](ctx context.Context, items []T, f func(ctx context.Context, i int, item T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, item := range items {
		group.Go(func() error { return f(ctx, i, item) })
	}
	return group.Wait()
}

// waves is the number of waves of Apply. An object is applied after the objects that it needs. A pod without its
// service account or ConfigMap would wait for a retry. A binding without its role is rejected for users who may not
// bind any role, and one without its policy for users who may not list everything.
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

// put applies an object; without overwrite, only if it does not exist.
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

// target is an object to change.
type target struct {
	Change   // kind, namespace and name
	resource resource
	live     Object // nil: it does not exist
}

// foreign returns the error for an object that liqonet does not own and would overwrite.
func (t target) foreign() error {
	return hint.With(fmt.Errorf("%s exists and is not managed by liqonet (no label %s)", t.operand(), records.LabelComponent),
		"choose another namespace with --namespace")
}

// at returns the target for a namespace and name, without reading it. like has the target's type and may be a nil
// pointer.
func (c *Cluster) at(like Object, namespace, name string) (t target, err error) {
	t = target{Change: Change{Kind: kindOf(like).Kind, Name: name}}
	t.resource, t.Namespace, err = c.resource(like, namespace)
	return t, err
}

// find reads an object.
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

// send applies an object. The change of an existing object lists the differences.
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

// ours reports whether an object has liqonet's label.
func ours(o Object) bool {
	_, labelled := o.GetLabels()[records.LabelComponent]
	return labelled
}

// describe returns a Change without an action.
func describe(o Object) Change {
	return Change{Kind: kindOf(o).Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// document converts an object for server-side apply: with its kind, without status, of which liqoctl must not become an
// owner.
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

// fieldsOf converts an object of the API to its JSON fields.
func fieldsOf(o Object) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(fmt.Sprintf("%T: %v", o, err)) // every field of an API type can be converted
	}
	return fields
}

// metadata returns the metadata of an unstructured object, which is always present.
func metadata(fields map[string]any) map[string]any {
	return fields["metadata"].(map[string]any) //nolint:forcetypeassert // see document
}
