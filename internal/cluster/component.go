package cluster

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/yaml"
)

// kubeadmNetworking is the part of kubeadm's ClusterConfiguration that tells ranges, separated by commas.
type kubeadmNetworking struct {
	PodSubnet     string `json:"podSubnet"`
	ServiceSubnet string `json:"serviceSubnet"`
}

// kubeadm reads one of the ranges that kubeadm was given.
func (q *question) kubeadm(field func(kubeadmNetworking) string) Ranges {
	const source = "kubeadm ConfigMap"
	text, found := q.inv.configMaps[kubeadmConfig]["ClusterConfiguration"]
	if !found {
		return Ranges{}
	}
	var config struct {
		Networking kubeadmNetworking `json:"networking"`
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		q.note("%s: %v", source, err)
		return Ranges{}
	}
	return Ranges{Prefixes: q.parse(source, field(config.Networking)), Source: source}
}

// argument reads a flag of a component that runs as a static pod.
func (q *question) argument(component, flag string) Ranges {
	for i := range q.inv.components {
		pod := &q.inv.components[i]
		if pod.Labels["component"] != component {
			continue
		}
		for _, container := range pod.Spec.Containers {
			// Some distributions start components by a shell: the words of the script count as well.
			words := strings.Fields(strings.Join(append(container.Command, container.Args...), " "))
			if text := flagValue(words, flag); text != "" {
				source := component + " " + flag
				return Ranges{Prefixes: q.parse(source, text), Source: source}
			}
		}
	}
	return Ranges{}
}

// k3s reads a flag of k3s or RKE2, which run the control plane inside their own process and write their
// arguments on their nodes.
func (q *question) k3s(flag string) Ranges {
	for i := range q.inv.nodes {
		for _, key := range []string{"k3s.io/node-args", "rke2.io/node-args"} {
			var words []string
			if json.Unmarshal([]byte(q.inv.nodes[i].Annotations[key]), &words) != nil {
				continue
			}
			if text := flagValue(words, flag); text != "" {
				source := key + " " + flag
				return Ranges{Prefixes: q.parse(source, text), Source: source}
			}
		}
	}
	return Ranges{}
}

// flagValue returns what follows a flag on a command line, written with "=" or as the next word.
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
