package templates

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// BaseValues are what differs between installations.
type BaseValues struct {
	Namespace string
	Image     string
}

// NodeClusterRole names the cluster-wide role, and its binding, of the node helper in a namespace.
func NodeClusterRole(namespace string) string {
	return fmt.Sprintf("%s:%s:%s", records.DefaultNamespace, namespace, records.NodeName)
}

// Base renders the objects of an installation, the Namespace first: the node helper with its rights. The
// fabric's and the IPAM's ConfigMap are not among them.
func Base(v BaseValues) ([]Object, error) {
	if err := errors.Join(validateNamespace(v.Namespace), validateImage(v.Image)); err != nil {
		return nil, fmt.Errorf("render the installation: %w", err)
	}
	var r reader
	namespace := read[corev1.Namespace](&r, "base/namespace.yaml")
	account := read[corev1.ServiceAccount](&r, "base/serviceaccount.yaml")
	role := read[rbacv1.Role](&r, "base/role.yaml")
	binding := read[rbacv1.RoleBinding](&r, "base/rolebinding.yaml")
	clusterRole := read[rbacv1.ClusterRole](&r, "base/clusterrole.yaml")
	clusterBinding := read[rbacv1.ClusterRoleBinding](&r, "base/clusterrolebinding.yaml")
	daemonSet := read[appsv1.DaemonSet](&r, "base/daemonset.yaml")
	if r.err != nil {
		return nil, r.err
	}
	labels := map[string]string{records.LabelComponent: records.ComponentFabric}
	identify(namespace, "", v.Namespace, labels)
	for _, o := range []Object{account, role, binding, daemonSet} {
		identify(o, v.Namespace, records.NodeName, labels)
	}
	for _, o := range []Object{clusterRole, clusterBinding} {
		identify(o, "", NodeClusterRole(v.Namespace), labels)
	}
	binding.RoleRef, binding.Subjects = grant(role, "Role", account)
	clusterBinding.RoleRef, clusterBinding.Subjects = grant(clusterRole, "ClusterRole", account)
	daemonSet.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	daemonSet.Spec.Template.Labels = labels
	pod := &daemonSet.Spec.Template.Spec
	pod.ServiceAccountName = account.Name
	pod.Containers[0].Image = v.Image
	return []Object{namespace, account, role, binding, clusterRole, clusterBinding, daemonSet}, nil
}

// grant returns what a binding says that gives a role of that kind to a service account.
func grant(role Object, kind string, account *corev1.ServiceAccount) (rbacv1.RoleRef, []rbacv1.Subject) {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role.GetName()},
		[]rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}}
}
