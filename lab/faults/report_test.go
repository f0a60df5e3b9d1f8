package faults

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/faults/flows"
	"liqonet.io/liqonet/lab/require"
)

func TestReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "faults.json")
	r, err := OpenReport(file)
	require.NoError(t, err)
	for lost := range 3 {
		s := Sample{Fault: "killed", Result: flows.Result{Sent: 1000, Lost: 10 * lost, Pause: time.Duration(lost) * 250 * time.Millisecond}}
		require.NoError(t, r.Add(s))
	}
	again, err := OpenReport(file)
	require.NoError(t, err)
	if again.Runs("killed") != 3 || again.Runs("stopped") != 0 {
		t.Errorf("read again: %d and %d runs, want 3 and none", again.Runs("killed"), again.Runs("stopped"))
	}
	var out strings.Builder
	require.NoError(t, again.Table(&out, All()))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want title, rule and one fault:\n%s", len(lines), out.String())
	}
	for _, want := range []string{"SIGKILL", "| 3 ", "| 10 / 20 ", "| 0.25 / 0.50 "} {
		if !strings.Contains(lines[2], want) {
			t.Errorf("%q is not in %q", want, lines[2])
		}
	}
}

// TestDocument: the page has a table for each number of gateways, and lists the aims that are not reached.
func TestDocument(t *testing.T) {
	folder := t.TempDir()
	add := func(file string, s Sample) {
		t.Helper()
		r, err := OpenReport(filepath.Join(folder, file))
		require.NoError(t, err)
		require.NoError(t, r.Add(s))
	}
	on := func(day int) time.Time { return time.Date(2031, time.May, day, 0, 0, 0, 0, time.UTC) }
	const ms = time.Millisecond
	add("faults-1.json", Sample{Fault: "upgrade", At: on(3), Result: flows.Result{Lost: 2}})
	add("faults-1.json", Sample{Fault: "stopped", At: on(4), Result: flows.Result{Broken: 1}})
	add("faults-2.json", Sample{Fault: "upgrade", At: on(7), Result: flows.Result{Sent: 5}})
	for i, without := range []time.Duration{900 * ms, 1900 * ms, 700 * ms} {
		add("faults-2.json", Sample{Fault: "power-client", At: on(6 + i), Result: flows.Result{Without: without}})
		add("faults-2.json", Sample{Fault: "killed", At: on(6), Result: flows.Result{Without: without / 2}})
	}
	add("faults-2-night.json", Sample{Fault: "upgrade", At: on(7)})
	add("faults-2.json.old", Sample{Fault: "api", At: on(1)})
	reports, err := Files(folder)
	require.NoError(t, err)
	var page strings.Builder
	require.NoError(t, Document(&page, reports))
	one, two, ok := strings.Cut(page.String(), "## 2 gateways on each side")
	if !ok || !strings.Contains(one, "3 May 2031 to 4 May 2031") || !strings.Contains(two, "6 May 2031 to 8 May 2031") {
		t.Errorf("page:\n%s", page.String())
	}
	for _, row := range []struct{ page, want string }{
		{one, "upgraded | 1 | 0 lost: **not reached** | 2 / 2"},
		{one, "minute | 1 | no stream broken: **not reached**"},
		{two, "upgraded | 2 | 0 lost | 0 / 0"},
		{two, "power | 3 | 1 s, worst 2 s | 0 / 0 | 0.90 / 1.90"},
		{two, "SIGKILL | 3 | 0.50 s: **not reached** | 0 / 0 | 0.45 / 0.95"},
	} {
		if words := strings.Join(strings.Fields(row.page), " "); !strings.Contains(words, row.want) {
			t.Errorf("%q is not in %s", row.want, words)
		}
	}
}

func TestNames(t *testing.T) {
	names := map[string]bool{}
	for _, f := range All() {
		if names[f.Name] || f.Name == "" || f.What == "" || f.Begin == nil {
			t.Errorf("fault %q: incomplete, or there twice", f.Name)
		}
		names[f.Name] = true
	}
}
