package templates

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// policies renders the admission policies of an installation, each with its binding: what the accounts of the node
// helper and of gateways may write, and which pods its namespace may hold.
func policies(r *reader, namespace string, account *corev1.ServiceAccount, labels map[string]string) []Object {
	names := []string{"gateways", "leases", "pods"}
	byName := make(map[string]*admissionv1.ValidatingAdmissionPolicy, len(names))
	here := map[string]string{corev1.LabelMetadataName: namespace}
	for _, name := range names {
		byName[name] = read[admissionv1.ValidatingAdmissionPolicy](r, "policy/"+name+".yaml")
	}
	if r.err != nil {
		return nil
	}
	gateways, leases, pods := byName["gateways"], byName["leases"], byName["pods"]
	// Names of namespaces and accounts are DNS labels: they need no quoting.
	accounts := "system:serviceaccount:" + namespace + ":"
	gateways.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: here}
	gateways.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name: "gateway", Expression: "request.userInfo.username.matches('^" + accounts + "gateway[0-9]*-')",
	}}
	leases.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: here}
	leases.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name: "node-helper", Expression: "request.userInfo.username == '" + accounts + account.Name + "'",
	}}
	// In a namespace of somebody else's there are other pods. Its label tells: see cluster.Kept.
	pods.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: here, MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: records.LabelComponent, Operator: metav1.LabelSelectorOpExists},
	}}
	var all []Object
	for _, name := range names {
		policy, binding := byName[name], read[admissionv1.ValidatingAdmissionPolicyBinding](r, "policy/binding.yaml")
		for _, o := range []Object{policy, binding} {
			identify(o, "", policyName(namespace, name), labels)
		}
		binding.Spec.PolicyName = policy.Name
		all = append(all, policy, binding)
	}
	return all
}

// policyName is clusterWide for kinds whose names are DNS names.
func policyName(namespace, name string) string {
	return strings.ReplaceAll(clusterWide(namespace, name), ":", ".")
}
