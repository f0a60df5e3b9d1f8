package status_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// alteration is what others do to an object.
type alteration struct {
	object string // by kind and name, as status names it
	do     func(context.Context, kubernetes.Interface) error
}

// client is what typed clients offer to tests.
type client[T kube.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

func deleted[T kube.Object](of func(kubernetes.Interface) client[T], name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, api kubernetes.Interface) error {
		return of(api).Delete(ctx, name, metav1.DeleteOptions{})
	}
}

func altered[T kube.Object](of func(kubernetes.Interface) client[T], name string, change func(T)) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, api kubernetes.Interface) error {
		object, err := of(api).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(object)
		_, err = of(api).Update(ctx, object, metav1.UpdateOptions{})
		return err
	}
}

// relabelled takes or changes one of an object's labels.
func relabelled[T kube.Object](of func(kubernetes.Interface) client[T], name, label, value string) func(context.Context, kubernetes.Interface) error {
	return altered(of, name, func(o T) {
		labels := o.GetLabels()
		if labels[label] = value; value == "" {
			delete(labels, label)
		}
		o.SetLabels(labels)
	})
}

func configMaps(k kubernetes.Interface) client[*corev1.ConfigMap] {
	return k.CoreV1().ConfigMaps("liqonet")
}
func secrets(k kubernetes.Interface) client[*corev1.Secret]   { return k.CoreV1().Secrets("liqonet") }
func services(k kubernetes.Interface) client[*corev1.Service] { return k.CoreV1().Services("liqonet") }
func accounts(k kubernetes.Interface) client[*corev1.ServiceAccount] {
	return k.CoreV1().ServiceAccounts("liqonet")
}
func deployments(k kubernetes.Interface) client[*appsv1.Deployment] {
	return k.AppsV1().Deployments("liqonet")
}
func daemonSets(k kubernetes.Interface) client[*appsv1.DaemonSet] {
	return k.AppsV1().DaemonSets("liqonet")
}
func roles(k kubernetes.Interface) client[*rbacv1.Role] { return k.RbacV1().Roles("liqonet") }
func bindings(k kubernetes.Interface) client[*rbacv1.RoleBinding] {
	return k.RbacV1().RoleBindings("liqonet")
}
func clusterRoles(k kubernetes.Interface) client[*rbacv1.ClusterRole] {
	return k.RbacV1().ClusterRoles()
}
func clusterBindings(k kubernetes.Interface) client[*rbacv1.ClusterRoleBinding] {
	return k.RbacV1().ClusterRoleBindings()
}

// alterations are what others can do to the objects of a peering of server a with client b, and of the installation.
func alterations() map[string]alteration {
	const component, peering = records.LabelComponent, records.LabelPeering
	record := func(name, text string) func(context.Context, kubernetes.Interface) error {
		return altered(configMaps, name, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{records.DataKey: text} })
	}
	return map[string]alteration{
		"record deleted":              {"ConfigMap peering-b", deleted(configMaps, "peering-b")},
		"record damaged":              {"ConfigMap peering-b", record("peering-b", "x")},
		"record without component":    {"ConfigMap peering-b", relabelled(configMaps, "peering-b", component, "")},
		"record of another component": {"ConfigMap peering-b", relabelled(configMaps, "peering-b", component, records.ComponentStatus)},
		"record of another peering":   {"ConfigMap peering-b", relabelled(configMaps, "peering-b", peering, "c")},
		"location deleted":            {"ConfigMap gateway-b", deleted(configMaps, "gateway-b")},
		"location relabelled":         {"ConfigMap gateway-b", relabelled(configMaps, "gateway-b", component, records.ComponentPeering)},
		"location damaged":            {"ConfigMap gateway-b", record("gateway-b", "x")},
		"status relabelled":           {"ConfigMap status-b", relabelled(configMaps, "status-b", peering, "")},
		"status damaged":              {"ConfigMap status-b", record("status-b", "x")},
		"status deleted":              {"ConfigMap status-b", deleted(configMaps, "status-b")},
		"fabric deleted":              {"ConfigMap fabric", deleted(configMaps, "fabric")},
		"fabric damaged":              {"ConfigMap fabric", record("fabric", "x")},
		"fabric relabelled":           {"ConfigMap fabric", relabelled(configMaps, "fabric", component, records.ComponentPeering)},
		"reservations deleted":        {"ConfigMap ipam", deleted(configMaps, "ipam")},
		"reservations damaged":        {"ConfigMap ipam", record("ipam", "x")},
		"keys deleted":                {"Secret peering-b", deleted(secrets, "peering-b")},
		"keys damaged":                {"Secret peering-b", altered(secrets, "peering-b", func(s *corev1.Secret) { s.Data = nil })},
		"Deployment deleted":          {"Deployment gateway-b", deleted(deployments, "gateway-b")},
		"Deployment scaled":           {"Deployment gateway-b", altered(deployments, "gateway-b", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })},
		"Deployment of another account": {"Deployment gateway-b", altered(deployments, "gateway-b", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.ServiceAccountName = "default"
		})},
		"Deployment relabelled":   {"Deployment gateway-b", relabelled(deployments, "gateway-b", peering, "c")},
		"Service deleted":         {"Service gateway-b", deleted(services, "gateway-b")},
		"Service selects nothing": {"Service gateway-b", altered(services, "gateway-b", func(s *corev1.Service) { s.Spec.Selector = nil })},
		"account deleted":         {"ServiceAccount gateway-b", deleted(accounts, "gateway-b")},
		"Role deleted":            {"Role gateway-b", deleted(roles, "gateway-b")},
		"Role without rules":      {"Role gateway-b", altered(roles, "gateway-b", func(r *rbacv1.Role) { r.Rules = nil })},
		"Role with more":          {"Role gateway-b", altered(roles, "gateway-b", func(r *rbacv1.Role) { r.Rules[0].Verbs = append(r.Rules[0].Verbs, "delete") })},
		"RoleBinding deleted":     {"RoleBinding gateway-b", deleted(bindings, "gateway-b")},
		"RoleBinding of another":  {"RoleBinding gateway-b", altered(bindings, "gateway-b", func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "x" })},
		"DaemonSet deleted":       {"DaemonSet node", deleted(daemonSets, "node")},
		"DaemonSet on fewer nodes": {"DaemonSet node", altered(daemonSets, "node", func(d *appsv1.DaemonSet) {
			d.Spec.Template.Spec.NodeSelector["x"] = "y"
			d.Spec.Template.Spec.Tolerations = nil
		})},
		"node account deleted":      {"ServiceAccount node", deleted(accounts, "node")},
		"node Role deleted":         {"Role node", deleted(roles, "node")},
		"node Role altered":         {"Role node", altered(roles, "node", func(r *rbacv1.Role) { r.Rules = r.Rules[:1] })},
		"node RoleBinding deleted":  {"RoleBinding node", deleted(bindings, "node")},
		"ClusterRole deleted":       {"ClusterRole liqonet:liqonet:node", deleted(clusterRoles, "liqonet:liqonet:node")},
		"ClusterRole altered":       {"ClusterRole liqonet:liqonet:node", altered(clusterRoles, "liqonet:liqonet:node", func(r *rbacv1.ClusterRole) { r.Rules = nil })},
		"ClusterRoleBinding is off": {"ClusterRoleBinding liqonet:liqonet:node", deleted(clusterBindings, "liqonet:liqonet:node")},
	}
}

// TestStatusTellsOfAlterations: whatever others delete or alter of a peering's objects, status names the object, and
// how to have it back.
func TestStatusTellsOfAlterations(t *testing.T) {
	t.Parallel()
	for name, a := range alterations() {
		bubble.Run(t, name, func(t *testing.T) {
			server, client := fakecluster.RunPair(t)
			o := connected.Options(server, client)
			o.LocalServes = new(true)
			fakecluster.Must(t, peering.Connect, o)
			side := status.Options{Cluster: server.Cluster}
			before, err := status.Read(t.Context(), side)
			if err != nil || len(before) != 1 || before[0].State != health.Healthy {
				t.Fatalf("before: %+v, %v", before, err)
			}
			fakecluster.Pause(server, client)
			require.NoError(t, a.do(t.Context(), server.Fake))
			all, err := status.Read(t.Context(), side)
			if err != nil || len(all) != 1 || all[0].Peer != "b" {
				t.Fatalf("status %+v, %v", all, err)
			}
			altered := health.With(all[0].Findings, status.ObjectsIntact, status.ObjectsDamaged, status.ObjectsKeys, status.GatewayRecords)
			if s := all[0]; s.State == health.Healthy || !strings.Contains(s.Reason, a.object) || len(altered) == 0 || !strings.HasPrefix(altered[0].Text, a.object) {
				t.Errorf("%s: %s; altered %+v; want %q in both", s.State, s.Reason, altered, a.object)
			}
		})
	}
}

// TestStatusOfDamagedPeering checks that a damaged peering does not affect the status of others.
func TestStatusOfDamagedPeering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		c := fakecluster.Third()
		fakecluster.Run(t, c)
		fakecluster.Must(t, peering.Connect, connected.Options(a, c))
		fakecluster.Pause(a, b, c)
		require.NoError(t, alterations()["record damaged"].do(t.Context(), a.Fake))
		all, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster})
		if err != nil || len(all) != 2 || all[0].Peer != "b" || all[0].State == health.Healthy || all[1].Peer != "c" || all[1].State != health.Healthy {
			t.Errorf("%+v, %v", all, err)
		}
		if _, err = status.Read(t.Context(), status.Options{Cluster: a.Cluster, Peer: "d"}); !errors.As(err, new(*inventory.NoPeeringError)) {
			t.Error(err)
		}
	})
}

// TestStatusWithFewRights checks that an object that the user may not read is left out, and all others are shown.
func TestStatusWithFewRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		a.Set(func() { a.Paused = true })
		for _, resource := range []string{"deployments", "daemonsets", "services", "serviceaccounts", "roles", "rolebindings", "clusterroles", "clusterrolebindings", "secrets"} {
			a.Forbid(resource)
		}
		all, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster})
		if err != nil || len(all) != 1 || all[0].State != health.Healthy {
			t.Errorf("%+v, %v", all, err)
		}
	})
}
