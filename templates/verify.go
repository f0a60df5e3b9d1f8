package templates

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// VerifyValues are the parameters of a verification of nodes.
type VerifyValues struct {
	Namespace string
	Image     string
	Pods      Pods
	Remove    bool     // remove remaining state
	Run       string   // of the run of liqoctl: see records.AnnotationRun
	Without   []string // nodes without a pod: on lost nodes, a pod would prevent the verification from ending
}

// Verify renders the verification of every node's kernel: a DaemonSet on the nodes of the node helper, with its
// capabilities and without access to the API server. Its init container writes the result to its termination message.
// The other container waits, without capabilities, because the pods of a DaemonSet must not end.
func Verify(v VerifyValues) (*appsv1.DaemonSet, error) {
	if err := errors.Join(validateNamespace(v.Namespace), validateImage(v.Image), v.Pods.Validate()); err != nil {
		return nil, fmt.Errorf("render the verification: %w", err)
	}
	var r reader
	set := read[appsv1.DaemonSet](&r, "base/daemonset.yaml")
	if r.err != nil {
		return nil, r.err
	}
	labels := map[string]string{records.LabelComponent: records.ComponentVerify}
	identify(set, v.Namespace, records.VerifyName, labels)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	// Without an installation, no quota admits pods of a critical priority.
	set.Spec.Template.Spec.PriorityClassName = ""
	v.Pods.set(set, &set.Spec.Template, labels)
	pod := &set.Spec.Template.Spec
	pod.AutomountServiceAccountToken = new(false)
	helper := pod.Containers[0]
	helper.Image, helper.Env, helper.ReadinessProbe, helper.LivenessProbe = v.Image, nil, nil, nil

	look := *helper.DeepCopy()
	look.Name, look.Args = "look", []string{"helper", "verify"}
	if v.Remove {
		look.Args = append(look.Args, "--remove")
	}
	rest := *helper.DeepCopy()
	rest.Name, rest.Args = "rest", []string{"helper", "verify", "--rest"}
	rest.SecurityContext.Capabilities.Add = nil
	pod.InitContainers, pod.Containers = []corev1.Container{look}, []corev1.Container{rest}
	annotateRun(v.Run, &set.ObjectMeta, &set.Spec.Template.ObjectMeta)
	excludeNodes(pod, v.Without)
	return set, nil
}

// annotateRun annotates objects with the ID of a run; "": none.
func annotateRun(run string, objects ...*metav1.ObjectMeta) {
	if run == "" {
		return
	}
	for _, o := range objects {
		metav1.SetMetaDataAnnotation(o, records.AnnotationRun, run)
	}
}

// excludeNodes keeps pods away from nodes. A requirement can have only one name, because the API has no list for it.
func excludeNodes(pod *corev1.PodSpec, nodes []string) {
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		for _, name := range nodes {
			terms[i].MatchFields = append(terms[i].MatchFields,
				corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{name}})
		}
	}
}
