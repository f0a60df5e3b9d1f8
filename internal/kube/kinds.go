package kube

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// client has the methods of every kind's typed client. T is a pointer to the object, L to its list.
type client[T Object, L runtime.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	Create(ctx context.Context, o T, opts metav1.CreateOptions) (T, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// resource is a client whose object type is known only at run time.
type resource interface {
	get(ctx context.Context, name string) (Object, error)
	list(ctx context.Context, o metav1.ListOptions) ([]Object, string, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	create(ctx context.Context, o Object) (Object, error)
	// apply sends an object; dry has the values of metav1.PatchOptions.DryRun.
	apply(ctx context.Context, name string, data []byte, dry ...string) (Object, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// erased converts a typed client to a resource.
type erased[T Object, L runtime.Object] struct{ client[T, L] }

func erase[T Object, L runtime.Object](c client[T, L]) resource { return erased[T, L]{c} }

func (e erased[T, L]) get(ctx context.Context, name string) (Object, error) {
	return e.Get(ctx, name, metav1.GetOptions{})
}

// list returns the objects and the resource version at which a watch continues.
func (e erased[T, L]) list(ctx context.Context, o metav1.ListOptions) ([]Object, string, error) {
	list, err := e.List(ctx, o)
	if err != nil {
		return nil, "", err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return nil, "", err
	}
	var all []Object
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(Object)
		if !ok {
			return fmt.Errorf("list item of type %T has no metadata", item)
		}
		all = append(all, object)
		return nil
	})
	return all, about.GetResourceVersion(), err
}

// create creates an object, which must be of the client's type.
func (e erased[T, L]) create(ctx context.Context, o Object) (Object, error) {
	typed, ok := o.(T)
	if !ok {
		return nil, fmt.Errorf("object of type %T", o)
	}
	return e.Create(ctx, typed, metav1.CreateOptions{FieldManager: FieldManager})
}

func (e erased[T, L]) apply(ctx context.Context, name string, data []byte, dry ...string) (Object, error) {
	force := true
	o := metav1.PatchOptions{FieldManager: FieldManager, Force: &force, FieldValidation: metav1.FieldValidationStrict, DryRun: dry}
	return e.Patch(ctx, name, types.ApplyPatchType, data, o)
}

type api = kubernetes.Interface

// kind is a kind of objects that a Cluster handles.
type kind struct {
	like   Object // of its type
	scope  scope
	client func(a api, namespace string) resource
}

// scope is where objects of a kind are.
type scope int

const (
	clusterWide scope = iota
	namespaced        // in any namespace
	inOurs            // liqonet creates them in its namespace
)

// kinds are the kinds that a Cluster handles.
var kinds = []kind{
	{&appsv1.Deployment{}, inOurs, func(a api, ns string) resource { return erase(a.AppsV1().Deployments(ns)) }},
	{&appsv1.DaemonSet{}, inOurs, func(a api, ns string) resource { return erase(a.AppsV1().DaemonSets(ns)) }},
	{&corev1.Service{}, inOurs, func(a api, ns string) resource { return erase(a.CoreV1().Services(ns)) }},
	{&corev1.ConfigMap{}, inOurs, func(a api, ns string) resource { return erase(a.CoreV1().ConfigMaps(ns)) }},
	{&corev1.Secret{}, inOurs, func(a api, ns string) resource { return erase(a.CoreV1().Secrets(ns)) }},
	{&coordinationv1.Lease{}, inOurs, func(a api, ns string) resource { return erase(a.CoordinationV1().Leases(ns)) }},
	{&rbacv1.RoleBinding{}, inOurs, func(a api, ns string) resource { return erase(a.RbacV1().RoleBindings(ns)) }},
	{&rbacv1.Role{}, inOurs, func(a api, ns string) resource { return erase(a.RbacV1().Roles(ns)) }},
	{&corev1.ServiceAccount{}, inOurs, func(a api, ns string) resource { return erase(a.CoreV1().ServiceAccounts(ns)) }},
	{&corev1.ResourceQuota{}, inOurs, func(a api, ns string) resource { return erase(a.CoreV1().ResourceQuotas(ns)) }},
	{&policyv1.PodDisruptionBudget{}, inOurs, func(a api, ns string) resource { return erase(a.PolicyV1().PodDisruptionBudgets(ns)) }},
	{&networkingv1.Ingress{}, inOurs, func(a api, ns string) resource { return erase(a.NetworkingV1().Ingresses(ns)) }},
	{&corev1.Pod{}, namespaced, func(a api, ns string) resource { return erase(a.CoreV1().Pods(ns)) }},
	{&discoveryv1.EndpointSlice{}, namespaced, func(a api, ns string) resource { return erase(a.DiscoveryV1().EndpointSlices(ns)) }},
	{&corev1.Namespace{}, clusterWide, func(a api, _ string) resource { return erase(a.CoreV1().Namespaces()) }},
	{&corev1.Node{}, clusterWide, func(a api, _ string) resource { return erase(a.CoreV1().Nodes()) }},
	{&rbacv1.ClusterRole{}, clusterWide, func(a api, _ string) resource { return erase(a.RbacV1().ClusterRoles()) }},
	{&rbacv1.ClusterRoleBinding{}, clusterWide, func(a api, _ string) resource { return erase(a.RbacV1().ClusterRoleBindings()) }},
	{&admissionv1.ValidatingAdmissionPolicy{}, clusterWide, func(a api, _ string) resource {
		return erase(a.AdmissionregistrationV1().ValidatingAdmissionPolicies())
	}},
	{&admissionv1.ValidatingAdmissionPolicyBinding{}, clusterWide, func(a api, _ string) resource {
		return erase(a.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings())
	}},
}

// resource returns the client for objects of o's type in a namespace, and the namespace: cluster-wide kinds have none.
// Only o's type is used: it may be a nil pointer.
func (c *Cluster) resource(o Object, namespace string) (resource, string, error) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return reflect.TypeOf(k.like) == reflect.TypeOf(o) })
	if i < 0 {
		return nil, "", fmt.Errorf("objects of type %T are not handled", o)
	}
	if kinds[i].scope == clusterWide {
		namespace = ""
	}
	r := kinds[i].client(c.Kube, namespace)
	switch {
	case c.dry != nil:
		r = dryResource{r, c.dry, fmt.Sprintf("%T %s/", o, namespace)}
	case c.lock != nil:
		r = guarded{r, c.locks, o}
	}
	return r, namespace, nil
}

// namespacedKinds are the kinds of the objects that liqonet creates in its namespace.
func namespacedKinds() (all []Object) {
	for _, k := range kinds {
		if k.scope == inOurs {
			all = append(all, k.like)
		}
	}
	return all
}

// kindOf returns the group, version and kind of an object by its Go type; for types that are not in the API, the name
// of the Go type.
func kindOf(o Object) schema.GroupVersionKind {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return schema.GroupVersionKind{Kind: fmt.Sprintf("%T", o)}
	}
	return kinds[0]
}
