package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
)

// maxValue is the maximum length, in bytes, of a value quoted in a difference.
const maxValue = 80

// Differences returns the fields in which two states of an object differ, without fields that the API server maintains.
func Differences(before, after Object) []string {
	_, secret := before.(*corev1.Secret)
	d := comparison{redact: secret}
	d.compare("", content(before), content(after))
	return d.fields
}

// lacking returns the fields of an object that are not as desired. Fields that are not in want belong to others or are
// defaults of the API server, and are ignored. In lists, however, additional elements are differences, because an
// additional element may be an additional permission.
func lacking(have, want map[string]any) []string {
	d := comparison{ignoreExtra: true}
	d.compare("", have, want)
	return d.fields
}

// content returns the fields of an object without server-managed metadata and status.
func content(o Object) map[string]any {
	fields := fieldsOf(o)
	for _, key := range []string{"apiVersion", "kind", "status"} {
		delete(fields, key)
	}
	about := metadata(fields)
	for _, key := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
		delete(about, key)
	}
	return fields
}

// comparison collects differences by path.
type comparison struct {
	redact      bool // omit values
	ignoreExtra bool // ignore fields that are not in the desired state
	fields      []string
}

func (d *comparison) compare(path string, old, wanted any) {
	if reflect.DeepEqual(old, wanted) {
		return
	}
	switch b := wanted.(type) {
	case map[string]any:
		if a, ok := old.(map[string]any); ok || d.ignoreExtra {
			d.maps(path, a, b)
			return
		}
	case []any:
		if a, ok := old.([]any); ok && elementwise(a, b) {
			for i := range max(len(a), len(b)) {
				d.compare(fmt.Sprintf("%s[%d]", path, i), element(a, i), element(b, i))
			}
			return
		}
	case string:
		if a, ok := old.(string); ok && !d.redact && !d.ignoreExtra && strings.Contains(a+b, "\n") {
			d.documents(path, a, b)
			return
		}
	}
	d.note(path, old, wanted)
}

// elementwise reports whether two lists are compared element by element. Lists of scalars with different lengths are
// not.
func elementwise(a, b []any) bool {
	return len(a) == len(b) || len(a) > 0 && ofObjects(a) && ofObjects(b)
}

// ofObjects reports whether all elements of a list have fields.
func ofObjects(list []any) bool {
	return !slices.ContainsFunc(list, func(e any) bool {
		_, is := e.(map[string]any)
		return !is
	})
}

// element returns the element at an index; nil if there is none.
func element(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

func (d *comparison) note(path string, old, wanted any) {
	difference := fmt.Sprintf("%s: %s -> %s", path, quote(old), quote(wanted))
	switch {
	case d.redact:
		difference = path + " differs"
	case d.ignoreExtra:
		difference = fmt.Sprintf("%s: %s, want %s", path, quote(old), quote(wanted))
	}
	d.fields = append(d.fields, difference)
}

func (d *comparison) maps(path string, old, wanted map[string]any) {
	keys := make(map[string]any)
	maps.Copy(keys, wanted)
	if d.ignoreExtra {
		maps.DeleteFunc(keys, func(_ string, value any) bool { return value == nil })
	} else {
		maps.Copy(keys, old)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		d.compare(strings.TrimPrefix(path+"."+key, "."), old[key], wanted[key])
	}
}

// documents compares texts of several lines. The YAML in a ConfigMap is compared field by field.
func (d *comparison) documents(path string, old, wanted string) {
	a, errOld := records.Fields(old)
	b, errWanted := records.Fields(wanted)
	if errOld != nil || errWanted != nil || reflect.DeepEqual(a, b) {
		d.fields = append(d.fields, path+" differs")
		return
	}
	d.maps(path, a, b)
}

// quote returns a value as JSON, shortened; "none" for a missing field.
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
