package discover

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"liqonet.io/liqonet/internal/records"
)

// parsed returns the ranges in texts of a source.
func (q *question) parsed(source string, texts ...string) Ranges {
	return Ranges{Prefixes: q.parse(source, texts...), Source: source}
}

// configured returns the ranges, separated by commas, in a field of a ConfigMap's document, which is YAML or JSON.
func (q *question) configured(source string, place types.NamespacedName, key string, path ...string) Ranges {
	text, found := q.inv.configMaps[place].Data[key]
	if !found {
		return Ranges{}
	}
	config, err := records.Fields(text)
	if err != nil {
		q.note("%s: %v", source, err)
		return Ranges{}
	}
	value, _, _ := unstructured.NestedString(config, path...)
	return q.parsed(source, value)
}

// argument returns the ranges in a flag of a control plane component that runs as a static pod. The first of the
// components with the flag applies.
func (q *question) argument(flag string, components ...string) Ranges {
	for _, component := range components {
		for _, pod := range q.inv.components.Items {
			if pod.Labels["component"] != component {
				continue
			}
			for _, container := range pod.Spec.Containers {
				// Some distributions start components through a shell: the words of the script are searched as well.
				words := strings.Fields(strings.Join(append(container.Command, container.Args...), " "))
				if r := q.parsed(component+" "+flag, flagValue(words, flag)); len(r.Prefixes) > 0 {
					return r
				}
			}
		}
	}
	return Ranges{}
}

// k3s returns the ranges in a flag of k3s or RKE2. Both run the control plane in their own process and store its
// arguments in annotations of their nodes.
func (q *question) k3s(flag string) Ranges {
	for _, node := range q.inv.nodes.Items {
		for _, key := range []string{"k3s.io/node-args", "rke2.io/node-args"} {
			var words []string
			if json.Unmarshal([]byte(node.Annotations[key]), &words) != nil {
				continue
			}
			if r := q.parsed(key+" "+flag, flagValue(words, flag)); len(r.Prefixes) > 0 {
				return r
			}
		}
	}
	return Ranges{}
}

// flagValue returns the value of a flag on a command line, after "=" or in the next word.
func flagValue(words []string, flag string) string {
	for i, word := range words {
		if value, found := strings.CutPrefix(word, flag+"="); found {
			return strings.Trim(value, `"'`)
		}
		if word == flag && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}
