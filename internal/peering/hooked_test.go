package peering

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

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

// hook runs a function once: when a request that changes a certain object is about to be sent, which is after the
// sender has read what it needs. What the function does is what another liqoctl does at that moment.
type hook struct {
	kind, name string // such as "ConfigMap", "fabric"
	run        func()
	once       sync.Once
}

func (h *hook) write(ctx context.Context, kind, name string, dryRun ...string) error {
	if kind == h.kind && name == h.name && len(dryRun) == 0 {
		h.once.Do(h.run)
	}
	return ctx.Err() // the fake client does not look at it
}

// hooked is the same cluster apart, with a hook.
func (w *world) hooked(kind, name string, run func()) *cluster.Cluster {
	c := w.apart()
	c.Kube = hookedClient{Interface: c.Kube, hook: &hook{kind: kind, name: name, run: run}}
	return c
}

// apart is the same cluster as it is for a run that does not wait for others, and for which others do not wait: one
// that has lost its lock while a write was on its way, or one of a release that takes none.
func (w *world) apart() *cluster.Cluster {
	c := *w.Cluster
	_, alone := fakecluster.NewAPIServer(fakecluster.Config{})
	c.Kube = apartClient{w.Kube, alone.CoordinationV1()}
	return &c
}

// apartClient has another lock than the cluster's.
type apartClient struct {
	kubernetes.Interface
	alone typedcoordinationv1.CoordinationV1Interface
}

func (c apartClient) CoordinationV1() typedcoordinationv1.CoordinationV1Interface {
	return apartCoordination{c.Interface.CoordinationV1(), c.alone}
}

type apartCoordination struct {
	typedcoordinationv1.CoordinationV1Interface
	alone typedcoordinationv1.CoordinationV1Interface
}

func (c apartCoordination) Leases(namespace string) typedcoordinationv1.LeaseInterface {
	return apartLeases{c.CoordinationV1Interface.Leases(namespace), c.alone.Leases(namespace)}
}

// apartLeases lead the requests for the lock, and these alone read, create and update, elsewhere.
type apartLeases struct {
	typedcoordinationv1.LeaseInterface
	alone typedcoordinationv1.LeaseInterface
}

func (l apartLeases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	if name == records.LockName {
		return l.alone.Get(ctx, name, o)
	}
	return l.LeaseInterface.Get(ctx, name, o)
}

func (l apartLeases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.alone.Create(ctx, lease, o)
}

func (l apartLeases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.alone.Update(ctx, lease, o)
}

type hookedClient struct {
	kubernetes.Interface
	hook *hook
}

type hookedCore struct {
	typedcorev1.CoreV1Interface
	hook *hook
}

type hookedApps struct {
	typedappsv1.AppsV1Interface
	hook *hook
}

func (c hookedClient) CoreV1() typedcorev1.CoreV1Interface {
	return hookedCore{c.Interface.CoreV1(), c.hook}
}
func (c hookedClient) AppsV1() typedappsv1.AppsV1Interface {
	return hookedApps{c.Interface.AppsV1(), c.hook}
}

func (c hookedCore) ConfigMaps(namespace string) typedcorev1.ConfigMapInterface {
	return hookedConfigMaps{c.CoreV1Interface.ConfigMaps(namespace), c.hook}
}

func (c hookedCore) Secrets(namespace string) typedcorev1.SecretInterface {
	return hookedSecrets{c.CoreV1Interface.Secrets(namespace), c.hook}
}

func (c hookedApps) Deployments(namespace string) typedappsv1.DeploymentInterface {
	return hookedDeployments{c.AppsV1Interface.Deployments(namespace), c.hook}
}

func (c hookedApps) DaemonSets(namespace string) typedappsv1.DaemonSetInterface {
	return hookedDaemonSets{c.AppsV1Interface.DaemonSets(namespace), c.hook}
}

type hookedConfigMaps struct {
	typedcorev1.ConfigMapInterface
	hook *hook
}

func (h hookedConfigMaps) Create(ctx context.Context, o *corev1.ConfigMap, opts metav1.CreateOptions) (*corev1.ConfigMap, error) {
	if err := h.hook.write(ctx, "ConfigMap", o.Name); err != nil {
		return nil, err
	}
	return h.ConfigMapInterface.Create(ctx, o, opts)
}

func (h hookedConfigMaps) Update(ctx context.Context, o *corev1.ConfigMap, opts metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	if err := h.hook.write(ctx, "ConfigMap", o.Name); err != nil {
		return nil, err
	}
	return h.ConfigMapInterface.Update(ctx, o, opts)
}

func (h hookedConfigMaps) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, sub ...string) (*corev1.ConfigMap, error) {
	if err := h.hook.write(ctx, "ConfigMap", name, opts.DryRun...); err != nil {
		return nil, err
	}
	return h.ConfigMapInterface.Patch(ctx, name, pt, data, opts, sub...)
}

func (h hookedConfigMaps) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	if err := h.hook.write(ctx, "ConfigMap", name); err != nil {
		return err
	}
	return h.ConfigMapInterface.Delete(ctx, name, opts)
}

type hookedSecrets struct {
	typedcorev1.SecretInterface
	hook *hook
}

func (h hookedSecrets) Create(ctx context.Context, o *corev1.Secret, opts metav1.CreateOptions) (*corev1.Secret, error) {
	if err := h.hook.write(ctx, "Secret", o.Name); err != nil {
		return nil, err
	}
	return h.SecretInterface.Create(ctx, o, opts)
}

func (h hookedSecrets) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, sub ...string) (*corev1.Secret, error) {
	if err := h.hook.write(ctx, "Secret", name, opts.DryRun...); err != nil {
		return nil, err
	}
	return h.SecretInterface.Patch(ctx, name, pt, data, opts, sub...)
}

type hookedDeployments struct {
	typedappsv1.DeploymentInterface
	hook *hook
}

func (h hookedDeployments) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, sub ...string) (*appsv1.Deployment, error) {
	if err := h.hook.write(ctx, "Deployment", name, opts.DryRun...); err != nil {
		return nil, err
	}
	return h.DeploymentInterface.Patch(ctx, name, pt, data, opts, sub...)
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
