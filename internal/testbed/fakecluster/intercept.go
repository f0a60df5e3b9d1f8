package fakecluster

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// hook runs a function once, before the first write of an object.
type hook struct {
	kind, name string // such as "ConfigMap", "fabric"
	run        func()
	once       sync.Once
}

func (h *hook) write(ctx context.Context, kind, name string, dryRun ...string) error {
	if kind == h.kind && name == h.name && len(dryRun) == 0 {
		h.once.Do(h.run)
	}
	return ctx.Err() // the fake client ignores it
}

// Intercept returns the cluster without its lock. It runs a function once, before the first write of a ConfigMap, a
// Secret or a Deployment, or the deletion of a DaemonSet, and after the caller has read what it needs: the function
// writes what another liqoctl writes at that moment.
func (c *Cluster) Intercept(kind, name string, run func()) *kube.Cluster {
	other := c.Unlocked()
	other.Kube = hookedClient{Interface: other.Kube, hook: &hook{kind: kind, name: name, run: run}}
	return other
}

// Unlocked returns the cluster for a run that has lost its lock while a write was on its way, or that takes none: it
// does not wait for other runs, and they do not wait for it.
func (c *Cluster) Unlocked() *kube.Cluster {
	other := *c.Cluster
	_, lock := NewAPIServer(Config{})
	other.Kube = unlockedClient{c.Fake, lock.CoordinationV1()}
	return &other
}

// unlockedClient has another lock than the cluster's.
type unlockedClient struct {
	kubernetes.Interface
	lock typedcoordinationv1.CoordinationV1Interface
}

func (c unlockedClient) CoordinationV1() typedcoordinationv1.CoordinationV1Interface {
	return unlockedCoordination{c.Interface.CoordinationV1(), c.lock}
}

type unlockedCoordination struct {
	typedcoordinationv1.CoordinationV1Interface
	lock typedcoordinationv1.CoordinationV1Interface
}

func (c unlockedCoordination) Leases(namespace string) typedcoordinationv1.LeaseInterface {
	return unlockedLeases{c.CoordinationV1Interface.Leases(namespace), c.lock.Leases(namespace)}
}

// unlockedLeases redirects the requests for the lock. Only they read, create and update.
type unlockedLeases struct {
	typedcoordinationv1.LeaseInterface
	lock typedcoordinationv1.LeaseInterface
}

func (l unlockedLeases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	if name == records.LockName {
		return l.lock.Get(ctx, name, o)
	}
	return l.LeaseInterface.Get(ctx, name, o)
}

func (l unlockedLeases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.lock.Create(ctx, lease, o)
}

func (l unlockedLeases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.lock.Update(ctx, lease, o)
}

type hookedClient struct {
	kubernetes.Interface
	hook *hook
}

func (c hookedClient) CoreV1() typedcorev1.CoreV1Interface {
	return hookedCore{c.Interface.CoreV1(), c.hook}
}

func (c hookedClient) AppsV1() typedappsv1.AppsV1Interface {
	return hookedApps{c.Interface.AppsV1(), c.hook}
}

type hookedCore struct {
	typedcorev1.CoreV1Interface
	hook *hook
}

func (c hookedCore) ConfigMaps(namespace string) typedcorev1.ConfigMapInterface {
	client := c.CoreV1Interface.ConfigMaps(namespace)
	return struct {
		configMaps
		hookedWrites[*corev1.ConfigMap]
	}{configMaps{client}, hookedWrites[*corev1.ConfigMap]{client, c.hook, "ConfigMap"}}
}

func (c hookedCore) Secrets(namespace string) typedcorev1.SecretInterface {
	client := c.CoreV1Interface.Secrets(namespace)
	return struct {
		secrets
		hookedWrites[*corev1.Secret]
	}{secrets{client}, hookedWrites[*corev1.Secret]{client, c.hook, "Secret"}}
}

type hookedApps struct {
	typedappsv1.AppsV1Interface
	hook *hook
}

func (c hookedApps) Deployments(namespace string) typedappsv1.DeploymentInterface {
	client := c.AppsV1Interface.Deployments(namespace)
	return struct {
		deployments
		hookedWrites[*appsv1.Deployment]
	}{deployments{client}, hookedWrites[*appsv1.Deployment]{client, c.hook, "Deployment"}}
}

func (c hookedApps) DaemonSets(namespace string) typedappsv1.DaemonSetInterface {
	return hookedDaemonSets{c.AppsV1Interface.DaemonSets(namespace), c.hook}
}

// Clients that are embedded one level deeper than hookedWrites, whose methods hide theirs.
type (
	configMaps  struct{ typedcorev1.ConfigMapInterface }
	secrets     struct{ typedcorev1.SecretInterface }
	deployments struct {
		typedappsv1.DeploymentInterface
	}
)

// writer has the writes of a typed client.
type writer[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

type hookedWrites[T metav1.Object] struct {
	client writer[T]
	hook   *hook
	kind   string
}

func (w hookedWrites[T]) Create(ctx context.Context, o T, opts metav1.CreateOptions) (made T, err error) {
	if err := w.hook.write(ctx, w.kind, o.GetName()); err != nil {
		return made, err
	}
	return w.client.Create(ctx, o, opts)
}

func (w hookedWrites[T]) Update(ctx context.Context, o T, opts metav1.UpdateOptions) (made T, err error) {
	if err := w.hook.write(ctx, w.kind, o.GetName()); err != nil {
		return made, err
	}
	return w.client.Update(ctx, o, opts)
}

func (w hookedWrites[T]) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, sub ...string) (made T, err error) {
	if err := w.hook.write(ctx, w.kind, name, opts.DryRun...); err != nil {
		return made, err
	}
	return w.client.Patch(ctx, name, pt, data, opts, sub...)
}

func (w hookedWrites[T]) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	if err := w.hook.write(ctx, w.kind, name); err != nil {
		return err
	}
	return w.client.Delete(ctx, name, opts)
}

type hookedDaemonSets struct {
	typedappsv1.DaemonSetInterface
	hook *hook
}

func (h hookedDaemonSets) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	if err := h.hook.write(ctx, "DaemonSet", name); err != nil {
		return err
	}
	return h.DaemonSetInterface.Delete(ctx, name, opts)
}
