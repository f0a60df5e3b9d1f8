package commands

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/hosts"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/removal"
	"liqonet.io/liqonet/internal/status"
	"liqonet.io/liqonet/internal/trace"
	"liqonet.io/liqonet/ipam"
)

// hostile is what a peer, a node or a file could call itself: it clears the screen, renames the window, writes a
// link, forges a line, a column and an answer, and reverses what follows.
const hostile = "\x1b[2J\x1b]0;owned\a\x1b]8;;http://x\x1b\\b\r\nc   healthy\t\u009b31m\u202eevil\x7f\x00\x9b"

// obeyed are the characters in a text that a terminal would obey, and all of it where it is no UTF-8.
func obeyed(text string) string {
	if !utf8.ValidString(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

func hostilePeering() status.Peering {
	return status.Peering{
		Peer: hostile, Role: hostile, State: health.Down, Reason: hostile, Endpoint: hostile, Implementation: hostile, Overlay: hostile,
		Pod: hostile, Nodes: []status.NodeState{{Name: hostile}},
	}
}

func TestTablesObeyNobody(t *testing.T) {
	for _, output := range []format{formatText, formatWide, formatJSON, formatYAML} {
		var b strings.Builder
		o := statusOptions{output: output}
		if err := o.print(&b, statusAnswer{Peerings: []status.Peering{hostilePeering()}}); err != nil {
			t.Fatal(err)
		}
		if bad := obeyed(b.String()); bad != "" {
			t.Errorf("-o %s: a terminal would obey %q in\n%q", output, bad, b.String())
		}
		if lines := strings.Count(b.String(), "\n"); (output == formatText || output == formatWide) && lines != 3 {
			t.Errorf("-o %s: a forged line:\n%s", output, b.String())
		}
		if output != formatJSON {
			continue
		}
		var back statusAnswer
		if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back.Peerings[0].Pod != strings.ToValidUTF8(hostile, "\ufffd") {
			t.Errorf("JSON means something else: %v, %+v", err, back.Peerings)
		}
	}
}

func TestProgressObeysNobody(t *testing.T) {
	var b strings.Builder
	p := newProgress(&b, false, false)
	p.Stage(hostile)
	p.mention(visibleCell(hostile))
	p.Done(hostile, hostile, time.Second)
	p.Note(hostile)
	p.Warn(hostile, hostile)
	p.fail(errors.New(hostile), hostile)
	if bad := obeyed(b.String()); bad != "" {
		t.Errorf("a terminal would obey %q in\n%q", bad, b.String())
	}
	if strings.Contains(b.String(), "\nc ") {
		t.Errorf("a forged line:\n%s", b.String())
	}
}

// written are all answers for people, with the same text wherever one can be.
func written(text string) map[string]string {
	status, wide, translate := statusOptions{output: formatText}, statusOptions{output: formatWide}, translateOptions{output: formatWide}
	tree, diagram := statusOptions{output: formatTree}, statusOptions{output: formatMermaid}
	return map[string]string{
		"init":        describeInstallation(full[peering.InitResult](text)),
		"connect":     describeConnection(full[peering.Connection](text)),
		"disconnect":  describeDisconnection(full[removal.Disconnection](text)),
		"reset":       describeReset(full[removal.ResetResult](text), false),
		"no reset":    describeReset(removal.ResetResult{Removed: removal.Removed{Context: text}}, false),
		"verify only": describeReset(full[removal.ResetResult](text), true),
		"expose":      describeExposure(full[hosts.Exposure](text)),
		"unexpose":    describeUnexposure(full[hosts.Exposure](text)),
		"test":        describePaths(full[pathtest.Result](text)),
		"trace":       describeTrace(full[trace.Result](text)),
		"perf":        describePerformance(full[pathtest.Result](text)),
		"tree":        with(func(w io.Writer) error { return tree.print(w, full[statusAnswer](text)) }),
		"mermaid":     with(func(w io.Writer) error { return diagram.print(w, full[statusAnswer](text)) }),
		"status":      with(func(w io.Writer) error { return status.print(w, full[statusAnswer](text)) }),
		"changes":     status.changes(time.Now(), statusAnswer{}, full[statusAnswer](text)),
		"wide status": with(func(w io.Writer) error { return wide.print(w, full[statusAnswer](text)) }),
		"list": with(func(w io.Writer) error {
			return table(w, reservationRows([]ipam.Reservation{full[ipam.Reservation](text)}, formatWide))
		}),
		"translate": with(func(w io.Writer) error { return translate.print(w, full[translatedAddresses](text)) }),
	}
}

// with is what a function writes; what it returns is never an error here.
func with(write func(io.Writer) error) string {
	var b strings.Builder
	if err := write(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// full is a value in which all that can be set is set, texts to the one that is given.
func full[T any](text string) T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), text)
	return v
}

func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), text)
			}
		}
	}
}

// TestAnswersObeyNobody: a text that comes from elsewhere stays in its place, whatever it holds.
func TestAnswersObeyNobody(t *testing.T) {
	plain := written("x")
	for name, text := range written(hostile) {
		if bad := obeyed(text); bad != "" {
			t.Errorf("%s: a terminal would obey %q in\n%q", name, bad, text)
		}
		if got, want := strings.Count(text, "\n"), strings.Count(plain[name], "\n"); got != want || want == 0 {
			t.Errorf("%s: %d lines, want %d: forged ones\n%s", name, got, want, text)
		}
		if !strings.Contains(text, "owned") {
			t.Errorf("%s: no text of others in it:\n%s", name, text)
		}
	}
}

func TestVisibleLeavesWhatIsPrinted(t *testing.T) {
	for _, text := range []string{"", "a b\nc", "✓ naïve 東京 µs", "…"} {
		if got := visible(text); got != text {
			t.Errorf("visible(%q) = %q", text, got)
		}
	}
	if got := visible("a\tb\x1bc\xff"); got != `a b\x1bc\xff` {
		t.Errorf("got %q", got)
	}
	if got := visibleJSON("\"\U000e0041\u202e\""); got != `"\udb40\udc41\u202e"` {
		t.Errorf("got %q", got)
	}
}

func FuzzVisible(f *testing.F) {
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, text string) {
		if bad := obeyed(visible(text)); bad != "" {
			t.Errorf("%q: a terminal would obey %q", text, bad)
		}
		if strings.ContainsAny(visibleCell(text), "\n\t") {
			t.Errorf("%q leaves its cell", text)
		}
	})
}
