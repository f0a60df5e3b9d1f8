package templates

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Pods are a cluster's settings for the pods of liqonet in it. A nil field leaves the manifests' own value.
type Pods struct {
	Labels           map[string]string   `json:"labels,omitempty"`
	Annotations      map[string]string   `json:"annotations,omitempty"`
	ImagePullSecrets []string            `json:"imagePullSecrets,omitempty"`
	PriorityClass    *string             `json:"priorityClass,omitempty"` // "" is the manifests' own
	Requests         corev1.ResourceList `json:"requests,omitempty"`      // those not named are the manifests'
	Limits           corev1.ResourceList `json:"limits,omitempty"`
	// Node helpers run on all nodes, whatever their taints: the rest is for gateways, and Tolerations also for the
	// translation service.
	GatewayNodeSelector map[string]string   `json:"gatewayNodeSelector,omitempty"`
	GatewayTolerations  []corev1.Toleration `json:"gatewayTolerations,omitempty"`
}

// ownPrefix begins the names of liqonet's own labels and annotations.
const ownPrefix = "liqonet.io/"

// annotationPods is on each workload: the settings by which it was rendered.
const annotationPods = ownPrefix + "pods"

// Meshes leave pods with these labels and annotations alone. A sidecar would need more than the admission policy of pods
// allows, and the packets of a tunnel are no requests.
var (
	outsideMeshLabels = map[string]string{
		"sidecar.istio.io/inject":   "false",
		"istio.io/dataplane-mode":   "none", // Istio's ambient mode
		"kuma.io/sidecar-injection": "disabled",
	}
	outsideMeshAnnotations = map[string]string{
		"linkerd.io/inject":                   "disabled",
		"consul.hashicorp.com/connect-inject": "false",
	}
)

// ReadPods returns the settings by which a workload was rendered.
func ReadPods(workload metav1.Object) (Pods, error) {
	var p Pods
	text := workload.GetAnnotations()[annotationPods]
	err := yaml.UnmarshalStrict([]byte(text), &p)
	if err = errors.Join(err, p.validate()); err != nil {
		return Pods{}, fmt.Errorf("annotation %s: %w", annotationPods, err)
	}
	return p, nil
}

// Over returns the settings with those of before where these are nil.
func (p Pods) Over(before Pods) Pods {
	fields, others := reflect.ValueOf(&p).Elem(), reflect.ValueOf(before)
	for i := range fields.NumField() {
		if field := fields.Field(i); field.IsNil() {
			field.Set(others.Field(i))
		}
	}
	return p
}

// set applies the settings for all pods to a workload's template, whose pods have liqonet's labels own.
func (p Pods) set(workload Object, template *corev1.PodTemplateSpec, own map[string]string) {
	template.Labels = merged(outsideMeshLabels, p.Labels, own)
	template.Annotations = merged(outsideMeshAnnotations, p.Annotations, template.Annotations)
	pod := &template.Spec
	for _, name := range p.ImagePullSecrets {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	if p.PriorityClass != nil && *p.PriorityClass != "" {
		pod.PriorityClassName = *p.PriorityClass
	}
	for i := range pod.Containers {
		needs := &pod.Containers[i].Resources
		needs.Requests, needs.Limits = merged(needs.Requests, p.Requests), merged(needs.Limits, p.Limits)
	}
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // text and quantities are always encoded
	}
	if text := string(data); text != "{}" {
		workload.SetAnnotations(merged(workload.GetAnnotations(), map[string]string{annotationPods: text}))
	}
}

// place applies the settings for gateways to one.
func (p Pods) place(pod *corev1.PodSpec) {
	pod.NodeSelector = merged(pod.NodeSelector, p.GatewayNodeSelector)
	pod.Tolerations = append(pod.Tolerations, p.GatewayTolerations...)
}

// merged has the entries of all; the last one's count.
func merged[M ~map[K]V, K comparable, V any](all ...M) M {
	sum := make(M)
	for _, m := range all {
		maps.Copy(sum, m)
	}
	return sum
}

func (p Pods) validate() error {
	var errs []error
	check := func(what, text string, problems []string) {
		if len(problems) > 0 {
			errs = append(errs, fmt.Errorf("%s %q: %s", what, text, strings.Join(problems, "; ")))
		}
	}
	for what, labels := range map[string]map[string]string{"label": p.Labels, "node label": p.GatewayNodeSelector} {
		for key, value := range labels {
			check(what, key, validation.IsQualifiedName(key))
			check("value of "+what, value, validation.IsValidLabelValue(value))
		}
	}
	for key := range p.Annotations {
		check("annotation", key, validation.IsQualifiedName(strings.ToLower(key)))
	}
	for key := range merged(p.Labels, p.Annotations) {
		if strings.HasPrefix(key, ownPrefix) {
			check("label or annotation", key, []string{"those with " + ownPrefix + " are liqonet's own"})
		}
	}
	for _, name := range p.ImagePullSecrets {
		check("image pull secret", name, validation.IsDNS1123Subdomain(name))
	}
	if p.PriorityClass != nil && *p.PriorityClass != "" {
		check("priority class", *p.PriorityClass, validation.IsDNS1123Subdomain(*p.PriorityClass))
	}
	for name := range merged(p.Requests, p.Limits) {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			check("resource", string(name), []string{"must be cpu or memory"})
		}
	}
	return errors.Join(errs...)
}
