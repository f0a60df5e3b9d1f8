package faults

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/faults/flows"
)

func TestReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "faults.json")
	r, err := OpenReport(file)
	if err != nil {
		t.Fatal(err)
	}
	for lost := range 3 {
		s := Sample{Fault: "killed", Result: flows.Result{Sent: 1000, Lost: 10 * lost, Pause: time.Duration(lost) * 250 * time.Millisecond}}
		if err := r.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	again, err := OpenReport(file)
	if err != nil {
		t.Fatal(err)
	}
	if again.Runs("killed") != 3 || again.Runs("stopped") != 0 {
		t.Errorf("read again: %d and %d runs, want 3 and none", again.Runs("killed"), again.Runs("stopped"))
	}
	var out strings.Builder
	if err := again.Table(&out, All()); err != nil {
		t.Fatal(err)
	}
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

func TestNames(t *testing.T) {
	names := map[string]bool{}
	for _, f := range All() {
		if names[f.Name] || f.Name == "" || f.What == "" || f.Begin == nil {
			t.Errorf("fault %q: incomplete, or there twice", f.Name)
		}
		names[f.Name] = true
	}
}
