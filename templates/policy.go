package templates

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// policies renders the admission policies of an installation, each with its binding: what the node helper's
// account may write, and which pods its namespace may hold.
func policies(r *reader, namespace string, account *corev1.ServiceAccount, labels map[string]string) []Object {
	leases := read[admissionv1.ValidatingAdmissionPolicy](r, "policy/leases.yaml")
	pods := read[admissionv1.ValidatingAdmissionPolicy](r, "policy/pods.yaml")
	bindings := [2]*admissionv1.ValidatingAdmissionPolicyBinding{
		read[admissionv1.ValidatingAdmissionPolicyBinding](r, "policy/binding.yaml"),
		read[admissionv1.ValidatingAdmissionPolicyBinding](r, "policy/binding.yaml"),
	}
	if r.err != nil {
		return nil
	}
	here := map[string]string{corev1.LabelMetadataName: namespace}
	leases.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: here}
	// Names of namespaces and accounts are DNS labels: they need no quoting.
	leases.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name:       "node-helper",
		Expression: "request.userInfo.username == 'system:serviceaccount:" + namespace + ":" + account.Name + "'",
	}}
	// In a namespace of somebody else's there are other pods. Its label tells: see cluster.Kept.
	pods.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: here, MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: records.LabelComponent, Operator: metav1.LabelSelectorOpExists},
	}}
	var all []Object
	for i, policy := range []*admissionv1.ValidatingAdmissionPolicy{leases, pods} {
		name := policyName(namespace, []string{"leases", "pods"}[i])
		identify(policy, "", name, labels)
		identify(bindings[i], "", name, labels)
		bindings[i].Spec.PolicyName = name
		all = append(all, policy, bindings[i])
	}
	return all
}

// policyName is clusterWide for kinds whose names are DNS names.
func policyName(namespace, name string) string {
	return strings.ReplaceAll(clusterWide(namespace, name), ":", ".")
}
