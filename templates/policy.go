package templates

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// policies renders the admission policies of an installation, each with its binding. They restrict what the accounts of
// the node helper and of gateways may write, and which pods, Services and records the namespace may contain.
func policies(r *reader, namespace string, account *corev1.ServiceAccount, labels map[string]string) []Object {
	// Names of namespaces and accounts are DNS labels: they need no quoting.
	accounts := "system:serviceaccount:" + namespace + ":"
	node := &admissionv1.MatchCondition{Name: "node-helper", Expression: "request.userInfo.username == '" + accounts + account.Name + "'"}
	gateway := &admissionv1.MatchCondition{Name: "gateway", Expression: "request.userInfo.username.matches('^" + accounts + "gateway[0-9]*-')"}
	here := map[string]string{corev1.LabelMetadataName: namespace}
	var all []Object
	for _, p := range []struct {
		name     string
		requests *admissionv1.MatchCondition // requests to which it applies; nil: all
		// The policy applies only if liqonet created the namespace: others may contain other objects.
		ownNamespaceOnly bool
	}{
		{"claims", node, false}, {"gateways", gateway, false}, {"ingresses", nil, true}, {"leases", node, false}, {"pods", nil, true}, {"records", nil, false}, {"services", nil, true},
	} {
		policy := read[admissionv1.ValidatingAdmissionPolicy](r, "policy/"+p.name+".yaml")
		binding := read[admissionv1.ValidatingAdmissionPolicyBinding](r, "policy/binding.yaml")
		if r.err != nil {
			return nil
		}
		policy.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: here}
		if p.ownNamespaceOnly { // recognized by its label: see cluster.Kept
			policy.Spec.MatchConstraints.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
				{Key: records.LabelComponent, Operator: metav1.LabelSelectorOpExists},
			}
		}
		if p.requests != nil {
			policy.Spec.MatchConditions = append(policy.Spec.MatchConditions, *p.requests)
		}
		if policy.Spec.ParamKind != nil { // the parameters are the Leases of nodes
			binding.Spec.ParamRef = &admissionv1.ParamRef{
				// With a namespace, an API server checks the permission to list them in that namespace, else
				// cluster-wide.
				Namespace:               namespace,
				Selector:                &metav1.LabelSelector{MatchLabels: map[string]string{records.LabelComponent: records.ComponentNode}},
				ParameterNotFoundAction: new(admissionv1.AllowAction),
			}
		}
		for _, o := range []Object{policy, binding} {
			identify(o, "", policyName(namespace, p.name), labels)
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
