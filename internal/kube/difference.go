package kube

import (
	"cmp"
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

// FieldChange is a field that differs between two states of an object. Its JSON is its text.
type FieldChange struct {
	// Path is a field such as "spec.replicas" or "gateways[0].address". Fields of a record have the prefix
	// "data.record.".
	Path string
	// Old and New are as decoded from JSON, or print themselves; nil: there is no such field.
	Old, New any
	// Verb, if not "", names the change of an element of a list, such as "reserve". One of Old and New is nil.
	Verb     string
	Initial  bool // the object is created: there is no old state
	Later    bool // the new value is known only during the operation
	Redacted bool // values are not shown: those of Secrets, and texts that differ in form only
}

// String returns a text such as `spec.template.spec.containers[0].image: "a" -> "b"`.
func (f FieldChange) String() string {
	switch {
	case f.Redacted:
		return f.Path + " differs"
	case f.Verb != "":
		return f.Verb + " " + Quote(cmp.Or(f.New, f.Old))
	case f.Initial && f.Later:
		return fmt.Sprintf("%s: %s", f.Path, ErrLater)
	case f.Initial:
		return fmt.Sprintf("%s: %s", f.Path, encode(f.New))
	case f.Later:
		return fmt.Sprintf("%s: %s -> %s", f.Path, Quote(f.Old), ErrLater)
	}
	return fmt.Sprintf("%s: %s -> %s", f.Path, Quote(f.Old), Quote(f.New))
}

// MarshalText returns the text of a change.
func (f FieldChange) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Differences returns the fields in which two states of an object differ, without fields that the API server maintains.
func Differences(before, after Object) []FieldChange {
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
	lines := make([]string, len(d.fields))
	for i, f := range d.fields {
		lines[i] = fmt.Sprintf("%s: %s, want %s", f.Path, Quote(f.Old), Quote(f.New))
	}
	return lines
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
	fields      []FieldChange
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
	change := FieldChange{Path: path, Redacted: d.redact}
	if !d.redact {
		change.Old, change.New = old, wanted
	}
	d.fields = append(d.fields, change)
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
		d.fields = append(d.fields, FieldChange{Path: path, Redacted: true})
		return
	}
	d.maps(path, a, b)
}

// Quote returns a value as encode does, JSON shortened; "none" for a missing field.
func Quote(value any) string {
	if value == nil {
		return "none"
	}
	text := encode(value)
	if _, own := value.(fmt.Stringer); !own && len(text) > maxValue {
		return text[:maxValue] + "..."
	}
	return text
}

// encode returns a value as JSON, or as it prints itself.
func encode(value any) string {
	if s, ok := value.(fmt.Stringer); ok {
		return s.String()
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
