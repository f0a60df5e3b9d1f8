package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// existing is the installation that there is in a cluster, as far as the user may look at it.
type existing struct {
	cluster.Live
	image    string
	pods     templates.Pods
	policies bool
	// comparable says that this liqoctl would make the same installation: what another version has made differs by
	// right.
	comparable bool
}

// readInstallation reads the objects with which a peering stands and falls, but for records and keys.
func readInstallation(ctx context.Context, c *cluster.Cluster) (existing, error) {
	kinds := []cluster.Object{
		&appsv1.Deployment{}, &appsv1.DaemonSet{}, &corev1.Service{}, &corev1.ServiceAccount{}, &corev1.ResourceQuota{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{}, &policyv1.PodDisruptionBudget{},
	}
	wide, err := inventory.ClusterWide(c.Namespace)
	if err != nil {
		return existing{}, err
	}
	live, err := c.ReadLive(ctx, kinds, wide)
	if err != nil {
		return existing{}, err
	}
	i := existing{Live: live}
	set, ok := live.Object(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: records.NodeName}}).(*appsv1.DaemonSet)
	if !ok || len(set.Spec.Template.Spec.Containers) == 0 {
		return i, nil
	}
	i.image = set.Spec.Template.Spec.Containers[0].Image
	if i.pods, err = templates.ReadPods(set); err != nil {
		return i, nil //nolint:nilerr // as what another version has made
	}
	for _, policies := range []bool{true, false} {
		base, err := templates.Base(templates.BaseValues{Namespace: c.Namespace, Image: i.image, Pods: i.pods, Policies: policies})
		if err == nil && templates.Digest(base) == set.Annotations[templates.AnnotationDigest] {
			i.policies, i.comparable = policies, true
		}
	}
	return i, nil
}

// alteredBase lists the objects of the installation that are not as they should be.
func (i existing) alteredBase(namespace string) ([]string, error) {
	base, err := templates.Base(templates.BaseValues{Namespace: namespace, Image: cmp.Or(i.image, inventory.AnyImage), Pods: i.pods, Policies: i.policies})
	if err != nil {
		return nil, err
	}
	// The namespace may be somebody else's, and no peering needs the lock.
	base = slices.DeleteFunc(base, func(o cluster.Object) bool { return is[*corev1.Namespace](o) || is[*coordinationv1.Lease](o) })
	return i.altered(base), nil
}

// alteredGateways lists the objects of a peering's gateways that are not as they should be. How their Service is
// reached is the user's choice, of which nothing is recorded.
func (i existing) alteredGateways(namespace string, p records.Peering) ([]string, error) {
	v := templates.GatewayValues{
		Namespace: namespace, Peering: p.Name, Image: i.image, Pods: i.pods, Role: p.Role, Implementation: p.Implementation,
		Gateways: len(p.Gateways), Tunnels: len(p.Gateways[0].Tunnels),
	}
	named := metav1.ObjectMeta{Name: records.ServiceName(p.Name)} // and that of the first gateway
	if d, ok := i.Object(&appsv1.Deployment{ObjectMeta: named}).(*appsv1.Deployment); ok && len(d.Spec.Template.Spec.Containers) > 0 {
		v.Image = d.Spec.Template.Spec.Containers[0].Image
		// Settings that have changed since reach gateways by the next connect.
		if pods, err := templates.ReadPods(d); err == nil {
			v.Pods = pods
		}
	}
	v.Image = cmp.Or(v.Image, inventory.AnyImage)
	v.Service.Type = corev1.ServiceTypeClusterIP
	if s, ok := i.Object(&corev1.Service{ObjectMeta: named}).(*corev1.Service); ok {
		var err error
		if v.Service, err = inventory.ServiceValues(s); err != nil {
			return nil, err
		}
	}
	objects, err := templates.Gateways(v)
	if err != nil {
		return nil, fmt.Errorf("gateways of peering %q: %w", p.Name, err)
	}
	// Their ConfigMaps are records, which are read apart.
	return i.altered(slices.DeleteFunc(objects, is[*corev1.ConfigMap])), nil
}

func is[T cluster.Object](o cluster.Object) bool {
	_, ok := o.(T)
	return ok
}

func (i existing) altered(wanted []cluster.Object) []string {
	var all []string
	for _, o := range wanted {
		if problem := i.Compare(o, i.comparable); problem != "" {
			all = append(all, problem)
		}
	}
	return all
}

// readKeys reads the Secrets of the namespace, for a user who may; nil: he may not. One request serves all gateways.
func readKeys(ctx context.Context, c *cluster.Cluster) (map[string]*corev1.Secret, error) {
	may := c.CheckPermissions(ctx, []cluster.Permission{{Verb: "list", Resource: "secrets", Namespace: c.Namespace}})
	if may != nil {
		return nil, nil //nolint:nilerr // who may not read keys is told nothing of them
	}
	all, err := cluster.All[*corev1.Secret](ctx, c, "")
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	byName := make(map[string]*corev1.Secret, len(all))
	for _, s := range all {
		byName[s.Name] = s
	}
	return byName, err
}

// alteredKeys says what is wrong with the keys of a gateway; "": nothing.
func alteredKeys(secrets map[string]*corev1.Secret, id records.GatewayID) string {
	name := id.KeysName()
	if secrets[name] == nil {
		return "Secret " + name + " is missing"
	}
	if _, err := inventory.DecodeKeys(secrets[name]); err != nil {
		return fmt.Sprintf("Secret %s cannot be read: %v", name, err)
	}
	return ""
}
