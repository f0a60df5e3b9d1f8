package plugin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/lab/spec"
)

// object is a Kubernetes object of any kind.
type object map[string]any

// parse reads YAML documents.
func parse(text []byte) ([]object, error) {
	var all []object
	for document := range strings.SplitSeq("\n"+string(text), "\n---") {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			return nil, fmt.Errorf("parse manifest: %w", err)
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
	return all, nil
}

// first are the kinds that objects of other kinds need.
var first = []string{"Namespace", "CustomResourceDefinition"}

// list writes objects as one List, in the order in which they can be created.
func list(all []object) ([]byte, error) {
	rank := func(o object) int {
		kind, _ := o["kind"].(string)
		if i := slices.Index(first, kind); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortStableFunc(all, func(x, y object) int { return cmp.Compare(rank(x), rank(y)) })
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": all})
}

// at returns the object below a path of fields, nil where there is none.
func (o object) at(path ...string) object {
	for _, field := range path {
		next, _ := o[field].(map[string]any)
		o = next
	}
	return o
}

// named reports whether the object is of that kind and name.
func (o object) named(kind, name string) bool {
	return o["kind"] == kind && o.at("metadata")["name"] == name
}

const usr = "usr"

// fit makes the pods of a workload run in the lab: they have the plugin's one image, which holds its programs alone,
// and find a distribution's programs (bash, iptables, clang) in the /usr of the machine.
func (o object) fit(p spec.NetworkPlugin) error {
	pod := o.at("spec", "template", "spec")
	if pod == nil {
		return nil
	}
	for _, field := range []string{"initContainers", "containers"} {
		containers, _ := pod[field].([]any)
		for _, c := range containers {
			container, ok := c.(map[string]any)
			if !ok {
				return fmt.Errorf("%s of %s: not an object", field, o["kind"])
			}
			container["image"], container["imagePullPolicy"] = Image(p), "IfNotPresent"
			mounts, _ := container["volumeMounts"].([]any)
			for _, m := range mounts {
				moveModules(m, "mountPath")
			}
			mount := map[string]any{"name": usr, "mountPath": "/usr", "readOnly": true}
			// The first: plugins mount files of theirs below it.
			container["volumeMounts"] = slices.Insert(mounts, 0, any(mount))
		}
	}
	volumes, _ := pod["volumes"].([]any)
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		moveModules(volume["hostPath"], "path")
	}
	pod["volumes"] = append(volumes, map[string]any{"name": usr, "hostPath": map[string]any{"path": "/usr"}})
	return nil
}

// moveModules moves kernel modules, in a field of an object, where a node can make a folder and a pod has none of the
// machine's: machines without modules lack it.
func moveModules(in any, field string) {
	if o, _ := in.(map[string]any); o != nil && o[field] == "/lib/modules" {
		o[field] = "/var/lib/modules"
	}
}

// merge puts values over others: objects field by field, everything else as a whole.
func merge(base, over map[string]any) {
	for field, value := range over {
		below, isObject := base[field].(map[string]any)
		overBelow, areObjects := value.(map[string]any)
		if isObject && areObjects {
			merge(below, overBelow)
			continue
		}
		base[field] = value
	}
}
