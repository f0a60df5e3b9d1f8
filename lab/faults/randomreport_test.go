package faults

import (
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/faults/flows"
	"liqonet.io/liqonet/lab/require"
)

// TestRandomReport: the section has a row for each kind that occurred, and sums of all.
func TestRandomReport(t *testing.T) {
	r := RandomReport{Seed: 7, Took: 90 * time.Second}
	const ms = time.Millisecond
	for i, s := range []Sample{
		{Fault: "power", Result: flows.Result{Sent: 6000, Lost: 30, Without: 300 * ms, Pause: 400 * ms}},
		{Fault: "power", Result: flows.Result{Sent: 6000, Lost: 50, Without: 500 * ms, Pause: 900 * ms, Broken: 1}},
		{Fault: "pod", Result: flows.Result{Sent: 1000}},
	} {
		s.At = time.Date(2031, time.May, 3, 0, i, 0, 0, time.UTC)
		r.Add(RandomSample{s, i})
	}
	var section strings.Builder
	require.NoError(t, r.Section(&section))
	text := strings.Join(strings.Fields(section.String()), " ")
	for _, want := range []string{
		"3 faults in 1m30s", "3 May 2031, seed 7", "80 of 13000 packets lost, 0.50 seconds", "1 streams broken", "0.90 seconds", "half a second: 3.",
		"power for 20 s | 2 | 50 / 50 | 0.50 / 0.50", "pod deleted | 1 | 0 / 0",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Contains(text, "SIGKILL") {
		t.Errorf("a row of a kind that did not occur: %s", text)
	}
	// The page keeps its other sections, and has one of random faults.
	page := "# Availability\n\n## 2 gateways\n\ntable\n"
	once := WithRandom(page, section.String())
	if twice := WithRandom(once, section.String()); twice != once || !strings.HasPrefix(once, page) {
		t.Errorf("page:\n%s", twice)
	}
	if other := WithRandom("# Availability\n", once); !strings.HasSuffix(other, section.String()) || strings.Contains(other, "table\n") {
		t.Errorf("a page written anew:\n%s", other)
	}
	if none := WithRandom(page, page); none != page {
		t.Errorf("a page without random faults:\n%s", none)
	}
}

// TestRandomKinds: names are distinct, as tables and seeds depend on them.
func TestRandomKinds(t *testing.T) {
	names := map[string]bool{}
	for _, k := range RandomKinds() {
		if names[k.Name] || k.Name == "" || k.What == "" || k.begin == nil {
			t.Errorf("kind %q: incomplete, or there twice", k.Name)
		}
		names[k.Name] = true
	}
}
