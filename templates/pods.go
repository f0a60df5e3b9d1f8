package templates

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Pods are a cluster's settings for liqonet's pods. A nil field keeps the value of the manifests.
type Pods struct {
	Labels           map[string]string   `json:"labels,omitempty"`
	Annotations      map[string]string   `json:"annotations,omitempty"`
	ImagePullSecrets []string            `json:"imagePullSecrets,omitempty"`
	PriorityClass    *string             `json:"priorityClass,omitempty"` // "": that of the manifests
	Requests         corev1.ResourceList `json:"requests,omitempty"`      // others: those of the manifests
	Limits           corev1.ResourceList `json:"limits,omitempty"`
	// Node helpers run on all nodes, whatever their taints: the other fields are for gateways.
	GatewayNodeSelector map[string]string   `json:"gatewayNodeSelector,omitempty"`
	GatewayTolerations  []corev1.Toleration `json:"gatewayTolerations,omitempty"`
}

// ownPrefix is the prefix of liqonet's own labels and annotations.
const ownPrefix = "liqonet.io/"

// AnnotationPods is an annotation of each workload: the settings with which it was rendered.
const AnnotationPods = ownPrefix + "pods"

// memoryOfGo is the share of a container's memory at which Go's garbage collector runs more often, so that the kernel
// does not kill the process. The rest is for memory that the collector does not manage, such as socket buffers.
const memoryOfGo = 0.85

// Service meshes ignore pods with these labels and annotations. A sidecar would need more than the admission policy for
// pods allows, and the packets of a tunnel are not requests.
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

// ReadPods returns the settings with which a workload was rendered.
func ReadPods(workload metav1.Object) (Pods, error) {
	var p Pods
	text := workload.GetAnnotations()[AnnotationPods]
	err := yaml.UnmarshalStrict([]byte(text), &p)
	if err = errors.Join(err, p.Validate()); err != nil {
		return Pods{}, fmt.Errorf("annotation %s: %w", AnnotationPods, err)
	}
	return p, nil
}

// set applies the settings for all pods to a workload's template; own are liqonet's labels for its pods.
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
		c := &pod.Containers[i]
		c.Resources.Requests, c.Resources.Limits = merged(c.Resources.Requests, p.Requests), merged(c.Resources.Limits, p.Limits)
		if limit := int64(float64(c.Resources.Limits.Memory().Value()) * memoryOfGo); limit > 0 {
			c.Env = append(c.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: strconv.FormatInt(limit, 10)})
		}
	}
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // texts and quantities can always be encoded
	}
	if text := string(data); text != "{}" {
		workload.SetAnnotations(merged(workload.GetAnnotations(), map[string]string{AnnotationPods: text}))
	}
}

// place applies the settings for gateways to a pod.
func (p Pods) place(pod *corev1.PodSpec) {
	pod.NodeSelector = merged(pod.NodeSelector, p.GatewayNodeSelector)
	pod.Tolerations = append(pod.Tolerations, p.GatewayTolerations...)
}

// merged merges maps; the last one takes precedence.
func merged[M ~map[K]V, K comparable, V any](all ...M) M {
	sum := make(M)
	for _, m := range all {
		maps.Copy(sum, m)
	}
	return sum
}

// Validate rejects settings that no pod can have.
func (p Pods) Validate() error {
	var errs []error
	for key := range p.Annotations {
		errs = append(errs, refused("an annotation's key", key, validation.IsQualifiedName(strings.ToLower(key))))
	}
	for _, labels := range []map[string]string{p.Labels, p.GatewayNodeSelector} {
		for key, value := range labels {
			errs = append(errs, validateLabel(key, value))
		}
	}
	for key := range merged(p.Labels, p.Annotations) {
		if strings.HasPrefix(key, ownPrefix) {
			errs = append(errs, fmt.Errorf("%q is not for users: labels and annotations with %s are liqonet's own", key, ownPrefix))
		}
	}
	for _, name := range p.ImagePullSecrets {
		errs = append(errs, refused("the name of an object", name, validation.IsDNS1123Subdomain(name)))
	}
	if p.PriorityClass != nil && *p.PriorityClass != "" {
		errs = append(errs, refused("the name of an object", *p.PriorityClass, validation.IsDNS1123Subdomain(*p.PriorityClass)))
	}
	for name := range merged(p.Requests, p.Limits) {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			errs = append(errs, fmt.Errorf("%q is neither cpu nor memory", string(name)))
		}
	}
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	for _, t := range p.GatewayTolerations {
		errs = append(errs, validateLabel(t.Key, t.Value))
		if !slices.Contains(effects, t.Effect) {
			errs = append(errs, fmt.Errorf("%q is no effect of taints: must be NoSchedule, PreferNoSchedule or NoExecute", string(t.Effect)))
		}
	}
	return errors.Join(errs...)
}

func validateLabel(key, value string) error {
	return errors.Join(refused("a label's key", key, validation.IsQualifiedName(key)), refused("a label's value", value, validation.IsValidLabelValue(value)))
}

// refused returns the error for an invalid text; nil if there are no problems.
func refused(what, text string, problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%q is not %s: %s", text, what, problems[0])
}
