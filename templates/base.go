package templates

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// BaseValues are the parameters of an installation.
type BaseValues struct {
	Namespace string
	Image     string
	Pods      Pods
	// Policies is set if the API server has kind ValidatingAdmissionPolicy, which is stable in Kubernetes 1.30.
	Policies bool
}

// AnnotationDigest is an annotation of the DaemonSet, which is applied last: a digest of all objects of the
// installation. A user who may not change them can compare it with the expected one.
const AnnotationDigest = "liqonet.io/installation"

// quotaName is the name of the ResourceQuota that admits critical priorities.
const quotaName = "critical-pods"

// clusterWide returns the name of a cluster-wide object of the installation in a namespace: a cluster may have several
// installations.
func clusterWide(namespace, name string) string {
	return fmt.Sprintf("%s:%s:%s", records.DefaultNamespace, namespace, name)
}

// NodeClusterRole returns the name of the node helper's ClusterRole, and of its binding, for a namespace.
func NodeClusterRole(namespace string) string { return clusterWide(namespace, records.NodeName) }

// Base renders the objects of an installation, the Namespace first: the node helper with its permissions. The
// ConfigMaps of fabric and IPAM are not included.
func Base(v BaseValues) ([]Object, error) {
	if err := errors.Join(validateNamespace(v.Namespace), validateImage(v.Image), v.Pods.Validate()); err != nil {
		return nil, fmt.Errorf("render the installation: %w", err)
	}
	var r reader
	namespace := read[corev1.Namespace](&r, "base/namespace.yaml")
	labels := map[string]string{records.LabelComponent: records.ComponentFabric}
	account, granted := r.account("base", v.Namespace, records.NodeName, labels)
	lock := read[coordinationv1.Lease](&r, "base/lease.yaml")
	quota := read[corev1.ResourceQuota](&r, "base/resourcequota.yaml")
	daemonSet := read[appsv1.DaemonSet](&r, "base/daemonset.yaml")
	if r.err != nil {
		return nil, r.err
	}
	identify(namespace, "", v.Namespace, labels)
	identify(lock, v.Namespace, records.LockName, map[string]string{records.LabelComponent: records.ComponentLock})
	identify(quota, v.Namespace, quotaName, labels)
	identify(daemonSet, v.Namespace, records.NodeName, labels)
	daemonSet.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	v.Pods.set(daemonSet, &daemonSet.Spec.Template, labels)
	pod := &daemonSet.Spec.Template.Spec
	pod.ServiceAccountName = account.Name
	pod.Containers[0].Image = v.Image
	objects := append([]Object{namespace, lock, quota}, granted...)
	if v.Policies {
		objects = append(objects, policies(&r, v.Namespace, account, labels)...)
	}
	objects = append(objects, daemonSet)
	metav1.SetMetaDataAnnotation(&daemonSet.ObjectMeta, AnnotationDigest, digest(objects))
	return objects, r.err
}

// digest is short: it distinguishes versions of an installation, and forging it has no use.
func digest(objects []Object) string {
	h := sha256.New()
	for _, o := range objects {
		// Encoding API objects and writing to a hash cannot fail.
		_ = json.NewEncoder(h).Encode(o)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Digest returns the digest of the installation to which the objects rendered by Base belong.
func Digest(base []Object) string {
	return base[len(base)-1].GetAnnotations()[AnnotationDigest] // of the DaemonSet
}

// account reads a service account and its roles, in the namespace and cluster-wide, from a folder. objects has all of
// them, the account first.
func (r *reader) account(folder, namespace, name string, labels map[string]string) (account *corev1.ServiceAccount, objects []Object) {
	account = read[corev1.ServiceAccount](r, folder+"/serviceaccount.yaml")
	role := read[rbacv1.Role](r, folder+"/role.yaml")
	binding := read[rbacv1.RoleBinding](r, folder+"/rolebinding.yaml")
	clusterRole := read[rbacv1.ClusterRole](r, folder+"/clusterrole.yaml")
	clusterBinding := read[rbacv1.ClusterRoleBinding](r, folder+"/clusterrolebinding.yaml")
	for _, o := range []Object{account, role, binding} {
		identify(o, namespace, name, labels)
	}
	for _, o := range []Object{clusterRole, clusterBinding} {
		identify(o, "", clusterWide(namespace, name), labels)
	}
	binding.RoleRef, binding.Subjects = grant(role, "Role", account)
	clusterBinding.RoleRef, clusterBinding.Subjects = grant(clusterRole, "ClusterRole", account)
	return account, []Object{account, role, binding, clusterRole, clusterBinding}
}

// grant returns the role reference and the subjects of a binding that grants a role of that kind to a service account.
func grant(role Object, kind string, account *corev1.ServiceAccount) (rbacv1.RoleRef, []rbacv1.Subject) {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role.GetName()},
		[]rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}}
}
