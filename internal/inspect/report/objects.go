package report

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// removed replaces a value.
const removed = "(removed)"

// readSecrets reads the values that must not be in the archive.
func (p part) readSecrets(ctx context.Context) {
	all, err := kube.All[*corev1.Secret](ctx, p.cluster, "")
	if err != nil {
		return // a user who may not read Secrets cannot leak them
	}
	for _, s := range all {
		for key, value := range s.Data {
			if key != corev1.ServiceAccountNamespaceKey { // not secret, and in every text
				p.scrub.addSecret(value)
			}
		}
	}
}

// addObjects adds the objects of liqonet in its namespace, one file for each kind.
func (p part) addObjects(ctx context.Context) {
	byKind, unread := p.cluster.AllKinds(ctx, records.LabelComponent)
	for kind, err := range unread {
		p.missing(kind+" objects", err)
	}
	for kind, objects := range byKind {
		p.addYAML(kind, objects)
	}
}

// addYAML adds objects, without values that may be secret.
func (p part) addYAML(kind string, objects []kube.Object) {
	var b strings.Builder
	for _, o := range objects {
		fields, err := fieldsOf(o)
		if err == nil {
			strip(kind, fields)
			// YAML breaks long texts at blanks: a secret with a blank would not be found afterwards.
			eachText(fields, p.scrub.withoutKnown)
			var text []byte
			text, err = yaml.Marshal(fields)
			b.WriteString("---\n" + string(text))
		}
		if err != nil {
			p.missing(kind+" "+o.GetName(), err)
		}
	}
	if b.Len() > 0 {
		p.add(fmt.Sprintf("%s/objects/%s.yaml", p.folder, strings.ToLower(kind)), b.String())
	}
}

func fieldsOf(o any) (fields map[string]any, err error) {
	text, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	return fields, err
}

// strip removes values that may be secret, and managed fields, from an object.
func strip(kind string, fields map[string]any) {
	own := map[string][]string{"ConfigMap": {records.DataKey, records.StateKey, records.ReasonKey}}[kind]
	if kind == "ConfigMap" || kind == "Secret" {
		for _, field := range []string{"data", "stringData", "binaryData"} {
			data, _ := fields[field].(map[string]any)
			for key := range data {
				if !slices.Contains(own, key) {
					data[key] = removed
				}
			}
		}
	}
	withoutValues(fields)
}

// withoutValues removes values of foreign annotations and of environment variables, at any depth.
func withoutValues(value any) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			withoutValues(one)
		}
	case map[string]any:
		delete(value, "managedFields")
		if annotations, ok := value["annotations"].(map[string]any); ok {
			for name := range annotations {
				if !strings.HasPrefix(name, "liqonet.io/") {
					annotations[name] = removed
				}
			}
		}
		if env, ok := value["env"].([]any); ok {
			for _, one := range env {
				if variable, ok := one.(map[string]any); ok && variable["value"] != nil {
					variable["value"] = removed
				}
			}
		}
		for _, field := range value {
			withoutValues(field)
		}
	}
}

// addNodes adds the relevant fields of nodes. Their labels and annotations may belong to others.
func (p part) addNodes(ctx context.Context) {
	all, err := kube.All[*corev1.Node](ctx, p.cluster, "")
	if err != nil {
		p.missing("nodes", err)
		return
	}
	var nodes []kube.Object
	for _, n := range all {
		nodes = append(nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, CreationTimestamp: n.CreationTimestamp},
			Spec:       corev1.NodeSpec{PodCIDRs: n.Spec.PodCIDRs, Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable},
			Status:     corev1.NodeStatus{Conditions: n.Status.Conditions, Addresses: n.Status.Addresses, NodeInfo: n.Status.NodeInfo},
		})
	}
	p.addYAML("Node", nodes)
}

// addEvents adds the events of the namespace, one line for each, the oldest first.
func (p part) addEvents(ctx context.Context) {
	list, err := p.cluster.Kube.CoreV1().Events(p.cluster.Namespace).List(ctx, metav1.ListOptions{Limit: 1000})
	if err != nil {
		p.missing("events", err)
		return
	}
	last := func(e corev1.Event) time.Time {
		return slices.MaxFunc([]time.Time{e.CreationTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time}, time.Time.Compare)
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return last(a).Compare(last(b)) })
	var b strings.Builder
	for _, e := range list.Items {
		line := fmt.Sprintf("%s %s %s/%s %s (%d): %s", last(e).UTC().Format("2006-01-02T15:04:05Z"), e.Type, e.InvolvedObject.Kind,
			e.InvolvedObject.Name, e.Reason, max(e.Count, 1), e.Message)
		b.WriteString(strings.ReplaceAll(line, "\n", " ") + "\n") // API servers accept any reason
	}
	p.add(p.folder+"/objects/events.txt", b.String())
}
