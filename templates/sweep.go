package templates

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// SweepValues are what differs between looks at what nodes have left.
type SweepValues struct {
	Namespace string
	Image     string
	Pods      Pods
	Remove    bool // what is found
}

// Sweep renders what looks at every node's kernel once: a DaemonSet on the nodes that node helpers run on, with their
// capabilities and no access to the API server. Its init container says in its termination message what it found; the
// other one rests, without any capability, since the pods of a DaemonSet never end.
func Sweep(v SweepValues) (*appsv1.DaemonSet, error) {
	if err := errors.Join(validateNamespace(v.Namespace), validateImage(v.Image), v.Pods.Validate()); err != nil {
		return nil, fmt.Errorf("render the sweep: %w", err)
	}
	var r reader
	set := read[appsv1.DaemonSet](&r, "base/daemonset.yaml")
	if r.err != nil {
		return nil, r.err
	}
	labels := map[string]string{records.LabelComponent: records.ComponentSweep}
	identify(set, v.Namespace, records.SweepName, labels)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	// Where liqonet is not installed, no quota admits pods of a critical priority.
	set.Spec.Template.Spec.PriorityClassName = ""
	v.Pods.set(set, &set.Spec.Template, labels)
	pod := &set.Spec.Template.Spec
	pod.AutomountServiceAccountToken, pod.Volumes = new(false), nil
	helper := pod.Containers[0]
	helper.Image, helper.Env, helper.VolumeMounts, helper.ReadinessProbe, helper.LivenessProbe = v.Image, nil, nil, nil, nil

	look := *helper.DeepCopy()
	look.Name, look.Args = "look", []string{"helper", "sweep"}
	if v.Remove {
		look.Args = append(look.Args, "--remove")
	}
	rest := *helper.DeepCopy()
	rest.Name, rest.Args = "rest", []string{"helper", "sweep", "--rest"}
	rest.SecurityContext.Capabilities.Add = nil
	pod.InitContainers, pod.Containers = []corev1.Container{look}, []corev1.Container{rest}
	return set, nil
}
