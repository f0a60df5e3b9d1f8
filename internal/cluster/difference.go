package cluster

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

// maxValue is the longest value, in bytes, that a difference quotes.
const maxValue = 80

// Differences lists the fields in which two states of an object differ, without those that the API server
// counts for itself.
func Differences(before, after Object) []string {
	_, secret := before.(*corev1.Secret)
	d := comparison{redact: secret}
	d.compare("", content(before), content(after))
	return d.fields
}

// lacking lists the fields of an object that are not as wanted. What is not wanted is others', or the API server's
// default: it counts in lists alone, where one element more can be a right more.
func lacking(have, want map[string]any) []string {
	d := comparison{lack: true}
	d.compare("", have, want)
	return d.fields
}

// content returns what an object says apart from bookkeeping and status.
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
	redact bool // quote no value
	lack   bool // leave out what is not wanted
	fields []string
}

func (d *comparison) compare(path string, old, wanted any) {
	if reflect.DeepEqual(old, wanted) {
		return
	}
	switch b := wanted.(type) {
	case map[string]any:
		if a, ok := old.(map[string]any); ok || d.lack {
			d.maps(path, a, b)
			return
		}
	case []any:
		if a, ok := old.([]any); ok && oneByOne(a, b) {
			for i := range max(len(a), len(b)) {
				d.compare(fmt.Sprintf("%s[%d]", path, i), element(a, i), element(b, i))
			}
			return
		}
	case string:
		if a, ok := old.(string); ok && !d.redact && !d.lack && strings.Contains(a+b, "\n") {
			d.documents(path, a, b)
			return
		}
	}
	d.note(path, old, wanted)
}

// oneByOne reports whether the elements of two lists are compared each for itself: lists of words are not, of other
// lengths.
func oneByOne(a, b []any) bool {
	return len(a) == len(b) || len(a) > 0 && ofObjects(a) && ofObjects(b)
}

// ofObjects reports whether all elements of a list have fields.
func ofObjects(list []any) bool {
	return !slices.ContainsFunc(list, func(e any) bool {
		_, is := e.(map[string]any)
		return !is
	})
}

// element is that of an index; nil: there is none.
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
	case d.lack:
		difference = fmt.Sprintf("%s: %s, want %s", path, quote(old), quote(wanted))
	}
	d.fields = append(d.fields, difference)
}

func (d *comparison) maps(path string, old, wanted map[string]any) {
	keys := make(map[string]any)
	maps.Copy(keys, wanted)
	if d.lack {
		maps.DeleteFunc(keys, func(_ string, value any) bool { return value == nil })
	} else {
		maps.Copy(keys, old)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		d.compare(strings.TrimPrefix(path+"."+key, "."), old[key], wanted[key])
	}
}

// documents compares texts of several lines: the YAML in a ConfigMap field by field.
func (d *comparison) documents(path string, old, wanted string) {
	a, errOld := records.Fields(old)
	b, errWanted := records.Fields(wanted)
	if errOld != nil || errWanted != nil || reflect.DeepEqual(a, b) {
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
