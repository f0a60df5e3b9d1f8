package commands

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"liqonet.io/liqonet/internal/peering"
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

func hostilePeering() peering.PeeringStatus {
	return peering.PeeringStatus{
		Peer: hostile, Role: hostile, State: peering.Down, Reason: hostile, Endpoint: hostile, Implementation: hostile, Overlay: hostile,
		Pod: hostile, Nodes: []peering.NodeState{{Name: hostile}},
	}
}

func TestTablesObeyNobody(t *testing.T) {
	for _, output := range []format{formatText, formatWide, formatJSON, formatYAML} {
		var b strings.Builder
		o := statusOptions{output: output}
		if err := o.print(&b, statusAnswer{Peerings: []peering.PeeringStatus{hostilePeering()}}); err != nil {
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
	p.Stage("reach")
	p.Done("reach", hostile, time.Second)
	p.Note(hostile)
	p.Warn(hostile, hostile)
	p.fail(errors.New(hostile), hostile)
	if bad := obeyed(b.String()); bad != "" {
		t.Errorf("a terminal would obey %q in\n%q", bad, b.String())
	}
}

func TestAnswersObeyNobody(t *testing.T) {
	var b strings.Builder
	env := &Env{Out: &b, Err: &b}
	env.start(false)
	r := peering.Connection{Local: peering.SideResult{Peering: hostile, Cluster: peering.ClusterInfo{Name: hostile}}}
	if err := answer(env, formatText, r, describeConnection); err != nil {
		t.Fatal(err)
	}
	if bad := obeyed(b.String()); bad != "" {
		t.Errorf("a terminal would obey %q in\n%q", bad, b.String())
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
