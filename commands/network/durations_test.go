package network

import (
	"encoding"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/inspect/diagnose"
	"liqonet.io/liqonet/internal/inspect/report"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inspect/trace"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/records"
)

// TestDurationsOfAnswers checks that no answer has a duration as nanoseconds or as text: JSON has all in seconds.
func TestDurationsOfAnswers(t *testing.T) {
	for _, answer := range []reflect.Type{
		reflect.TypeFor[peering.InitResult](), reflect.TypeFor[peering.Connection](), reflect.TypeFor[peering.Rotation](),
		reflect.TypeFor[removal.Disconnection](), reflect.TypeFor[removal.ResetResult](), reflect.TypeFor[expose.Exposure](),
		reflect.TypeFor[status.Peering](), reflect.TypeFor[diagnose.Result](), reflect.TypeFor[report.Result](),
		reflect.TypeFor[trace.Result](), reflect.TypeFor[pathtest.Result](),
	} {
		checkDurations(t, answer, answer.String(), make(map[reflect.Type]bool))
	}
}

func checkDurations(t *testing.T, of reflect.Type, path string, seen map[reflect.Type]bool) {
	t.Helper()
	if of == reflect.TypeFor[time.Duration]() || of == reflect.TypeFor[records.Duration]() {
		t.Errorf("%s is a %s: want seconds.Duration", path, of)
	}
	if seen[of] || of.Implements(reflect.TypeFor[json.Marshaler]()) || of.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return
	}
	seen[of] = true
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		checkDurations(t, of.Elem(), path, seen)
	case reflect.Struct:
		for field := range of.Fields() {
			if field.Tag.Get("json") != "-" && (field.IsExported() || field.Anonymous) {
				checkDurations(t, field.Type, path+"."+field.Name, seen)
			}
		}
	}
}
