package templates

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// VerifyValues are what differs between looks at what nodes have left.
type VerifyValues struct {
	Namespace string
	Image     string
	Pods      Pods
	Remove    bool     // what is found
	Run       string   // of liqoctl that makes it: see records.AnnotationRun
	Without   []string // nodes on which no pod is wanted: those that are lost, which would keep it from ending
}

// Verify renders what looks at every node's kernel once: a DaemonSet on the nodes that node helpers run on, with their
// capabilities and no access to the API server. Its init container says in its termination message what it found; the
// other one rests, without any capability, since the pods of a DaemonSet never end.
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
	// Where liqonet is not installed, no quota admits pods of a critical priority.
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
	mark(v.Run, &set.ObjectMeta, &set.Spec.Template.ObjectMeta)
	avoid(pod, v.Without)
	return set, nil
}

// mark has objects bear the name of the run that makes them; "": it is of no interest.
func mark(run string, objects ...*metav1.ObjectMeta) {
	if run == "" {
		return
	}
	for _, o := range objects {
		metav1.SetMetaDataAnnotation(o, records.AnnotationRun, run)
	}
}

// avoid keeps pods away from nodes. A requirement takes one name: the API has no list of them.
func avoid(pod *corev1.PodSpec, nodes []string) {
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		for _, name := range nodes {
			terms[i].MatchFields = append(terms[i].MatchFields,
				corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{name}})
		}
	}
}
