package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// maxValue is the longest value, in bytes, that a difference quotes.
const maxValue = 80

// Differences lists the fields in which two states of an object differ, without those that the API server
// counts for itself.
func Differences(before, after Object) ([]string, error) {
	old, err := content(before)
	if err != nil {
		return nil, err
	}
	wanted, err := content(after)
	if err != nil {
		return nil, err
	}
	_, secret := before.(*corev1.Secret)
	d := comparison{redact: secret}
	d.compare("", old, wanted)
	return d.fields, nil
}

// content returns what an object says apart from bookkeeping and status.
func content(o Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"apiVersion", "kind", "status"} {
		delete(fields, key)
	}
	if about, ok := fields["metadata"].(map[string]any); ok {
		for _, key := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
			delete(about, key)
		}
	}
	return fields, nil
}

// comparison collects differences by path.
type comparison struct {
	redact bool // quote no value
	fields []string
}

func (d *comparison) compare(path string, old, wanted any) {
	if reflect.DeepEqual(old, wanted) {
		return
	}
	switch a := old.(type) {
	case map[string]any:
		if b, ok := wanted.(map[string]any); ok {
			d.maps(path, a, b)
			return
		}
	case []any:
		if b, ok := wanted.([]any); ok && len(a) == len(b) {
			for i := range a {
				d.compare(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])
			}
			return
		}
	case string:
		if b, ok := wanted.(string); ok && !d.redact && strings.Contains(a+b, "\n") {
			d.documents(path, a, b)
			return
		}
	}
	if d.redact {
		d.fields = append(d.fields, path+" differs")
		return
	}
	d.fields = append(d.fields, fmt.Sprintf("%s: %s -> %s", path, quote(old), quote(wanted)))
}

func (d *comparison) maps(path string, old, wanted map[string]any) {
	keys := maps.Clone(old)
	maps.Copy(keys, wanted)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		d.compare(strings.TrimPrefix(path+"."+key, "."), old[key], wanted[key])
	}
}

// documents compares texts of several lines: the YAML in a ConfigMap field by field.
func (d *comparison) documents(path string, old, wanted string) {
	var a, b map[string]any
	if yaml.Unmarshal([]byte(old), &a) != nil || yaml.Unmarshal([]byte(wanted), &b) != nil || reflect.DeepEqual(a, b) {
		d.fields = append(d.fields, path+" differs")
		return
	}
	d.maps(path, a, b)
}

// quote returns a value as JSON, shortened; "none" for a field that is not there.
func quote(value any) string {
	if value == nil {
		return "none"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(text) > maxValue {
		return string(text[:maxValue]) + "..."
	}
	return string(text)
}
