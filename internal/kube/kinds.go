package kube

import (
	"context"
	"fmt"

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

// resource returns the client for objects of o's type in a namespace; cluster-wide kinds ignore the namespace. Only o's
// type is used: it may be a nil pointer.
func (c *Cluster) resource(o Object, namespace string) (resource, error) {
	r := c.namespaced(o, namespace)
	if r == nil {
		r, namespace = c.clusterWide(o), ""
	}
	switch {
	case r == nil:
		return nil, fmt.Errorf("objects of type %T are not handled", o)
	case c.dry != nil:
		return dryResource{r, c.dry, prefixOf(o, namespace)}, nil
	case c.lock != nil:
		return guarded{r, c.locks, o}, nil
	}
	return r, nil
}

// namespaced returns the client for objects of o's type in a namespace; nil for other kinds.
func (c *Cluster) namespaced(o Object, namespace string) resource {
	core, apps, rbac := c.Kube.CoreV1(), c.Kube.AppsV1(), c.Kube.RbacV1()
	switch o.(type) {
	case *corev1.Pod:
		return erase(core.Pods(namespace))
	case *corev1.ConfigMap:
		return erase(core.ConfigMaps(namespace))
	case *corev1.Secret:
		return erase(core.Secrets(namespace))
	case *corev1.ResourceQuota:
		return erase(core.ResourceQuotas(namespace))
	case *corev1.Service:
		return erase(core.Services(namespace))
	case *corev1.ServiceAccount:
		return erase(core.ServiceAccounts(namespace))
	case *appsv1.DaemonSet:
		return erase(apps.DaemonSets(namespace))
	case *appsv1.Deployment:
		return erase(apps.Deployments(namespace))
	case *discoveryv1.EndpointSlice:
		return erase(c.Kube.DiscoveryV1().EndpointSlices(namespace))
	case *coordinationv1.Lease:
		return erase(c.Kube.CoordinationV1().Leases(namespace))
	case *networkingv1.Ingress:
		return erase(c.Kube.NetworkingV1().Ingresses(namespace))
	case *policyv1.PodDisruptionBudget:
		return erase(c.Kube.PolicyV1().PodDisruptionBudgets(namespace))
	case *rbacv1.Role:
		return erase(rbac.Roles(namespace))
	case *rbacv1.RoleBinding:
		return erase(rbac.RoleBindings(namespace))
	}
	return nil
}

// clusterWide returns the client for objects of o's type; nil for namespaced kinds.
func (c *Cluster) clusterWide(o Object) resource {
	core, rbac, admission := c.Kube.CoreV1(), c.Kube.RbacV1(), c.Kube.AdmissionregistrationV1()
	switch o.(type) {
	case *corev1.Namespace:
		return erase(core.Namespaces())
	case *corev1.Node:
		return erase(core.Nodes())
	case *rbacv1.ClusterRole:
		return erase(rbac.ClusterRoles())
	case *rbacv1.ClusterRoleBinding:
		return erase(rbac.ClusterRoleBindings())
	case *admissionv1.ValidatingAdmissionPolicy:
		return erase(admission.ValidatingAdmissionPolicies())
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return erase(admission.ValidatingAdmissionPolicyBindings())
	}
	return nil
}

// namespacedKinds are the kinds of the objects that liqonet creates in its namespace.
func namespacedKinds() []Object {
	return []Object{
		&appsv1.Deployment{}, &appsv1.DaemonSet{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.Secret{},
		&coordinationv1.Lease{}, &rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{},
		&corev1.ResourceQuota{}, &policyv1.PodDisruptionBudget{}, &networkingv1.Ingress{},
	}
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
