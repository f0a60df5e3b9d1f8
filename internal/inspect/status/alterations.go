package status

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// existing is the installation in a cluster, as far as the user's permissions allow reading it.
type existing struct {
	kube.Live
	image    string
	pods     templates.Pods
	policies bool
	// comparable reports whether this liqoctl would create the same installation. An installation by another version
	// differs legitimately.
	comparable bool
}

// installationOf returns the objects of an installation except records and keys.
func installationOf(s *observe.Snapshot) existing {
	i := existing{Live: s.Objects}
	set, ok := i.Object(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: records.NodeName}}).(*appsv1.DaemonSet)
	if !ok || len(set.Spec.Template.Spec.Containers) == 0 {
		return i
	}
	var err error
	i.image = set.Spec.Template.Spec.Containers[0].Image
	if i.pods, err = templates.ReadPods(set); err != nil {
		return i // not comparable, as if another version had created it
	}
	for _, policies := range []bool{true, false} {
		base, err := templates.Base(templates.BaseValues{Namespace: s.Namespace, Image: i.image, Pods: i.pods, Policies: policies})
		if err == nil && templates.Digest(base) == set.Annotations[templates.AnnotationDigest] {
			i.policies, i.comparable = policies, true
		}
	}
	return i
}

// alteredBase lists the objects of the installation that differ from the desired ones.
func (i existing) alteredBase(namespace string) ([]health.Finding, error) {
	base, err := templates.Base(templates.BaseValues{Namespace: namespace, Image: cmp.Or(i.image, inventory.AnyImage), Pods: i.pods, Policies: i.policies})
	if err != nil {
		return nil, err
	}
	// The namespace may belong to another owner, and no peering needs the lock.
	base = slices.DeleteFunc(base, func(o kube.Object) bool { return is[*corev1.Namespace](o) || is[*coordinationv1.Lease](o) })
	return i.altered(base), nil
}

// alteredGateways lists the objects of a peering's gateways that differ from the desired ones.
func (i existing) alteredGateways(namespace string, p records.Peering) ([]health.Finding, error) {
	v := templates.GatewayValues{
		Namespace: namespace, Peering: p.Name, Image: i.image, Pods: i.pods, Role: p.Role, Settings: p.Settings,
		Gateways: len(p.Gateways), Tunnels: len(p.Gateways[0].Tunnels),
	}
	named := metav1.ObjectMeta{Name: records.ServiceName(p.Name)} // also the name of the first gateway's Deployment
	if d, ok := i.Object(&appsv1.Deployment{ObjectMeta: named}).(*appsv1.Deployment); ok && len(d.Spec.Template.Spec.Containers) > 0 {
		v.Image = d.Spec.Template.Spec.Containers[0].Image
		// Gateways get settings that have changed since only at the next connect.
		if pods, err := templates.ReadPods(d); err == nil {
			v.Pods = pods
		}
	}
	v.Image = cmp.Or(v.Image, inventory.AnyImage)
	objects, err := templates.Gateways(v)
	if err != nil {
		return nil, fmt.Errorf("gateways of peering %q: %w", p.Name, err)
	}
	// Their ConfigMaps are records, which are read separately.
	return i.altered(slices.DeleteFunc(objects, is[*corev1.ConfigMap])), nil
}

func is[T kube.Object](o kube.Object) bool {
	_, ok := o.(T)
	return ok
}

func (i existing) altered(desired []kube.Object) (findings []health.Finding) {
	for _, o := range desired {
		if problem := i.Compare(o, i.comparable); problem != "" {
			findings = append(findings, health.OfObject(ObjectsIntact, problem))
		}
	}
	return findings
}
