package network

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/testbed/assert"
)

// TestStatusWatch: text output is the table once, then lines.
func TestStatusWatch(t *testing.T) {
	out, err := statusOf(t, peerings(), "--watch")
	if !errors.Is(err, cli.ErrInterrupted) {
		t.Errorf("error %v after the end of a watch", err)
	}
	table, _ := statusOf(t, peerings()[:1])
	line, begins := strings.CutPrefix(out, table)
	if !begins || !regexp.MustCompile(`^\d\d:\d\d:\d\d c connecting, nodes 0/2: the gateway has not reported yet\n$`).MatchString(line) {
		t.Errorf("%s\nbegins with the table: %v", out, begins)
	}
	if _, err := statusOf(t, peerings(), "--watch", "-o", "mermaid"); !errors.As(err, new(*cli.UsageError)) {
		t.Errorf("error %v", err)
	}
}

// TestStatusWatchForPrograms: structured output is the same document that status prints without --watch, repeated after
// each report.
func TestStatusWatchForPrograms(t *testing.T) {
	created := time.Now().Add(-time.Hour)
	all := peerings()
	all[0].Gateways[0].KeyCreated = created
	first, _ := statusOf(t, all[:1], "-o", "json")
	second, _ := statusOf(t, all, "-o", "json")
	out, err := statusOf(t, all, "--watch", "-o", "json")
	if !errors.Is(err, cli.ErrInterrupted) || out != first+second {
		t.Errorf("%v\n%s", err, cmp.Diff(first+second, out))
	}
	var states []health.State
	for answers := json.NewDecoder(strings.NewReader(out)); ; {
		var answer struct {
			Peerings []struct{ State health.State }
		}
		if err := answers.Decode(&answer); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, p := range answer.Peerings {
			states = append(states, p.State)
		}
	}
	assert.Equal(t, "states", []health.State{health.Healthy, health.Healthy, health.Connecting}, states)
	out, _ = statusOf(t, all, "--watch", "-o", "yaml")
	if got := strings.Count(out, "---\n"); got != 2 {
		t.Errorf("%d documents, want 2:\n%s", got, out)
	}
}

func TestChanges(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	degraded := func(reason string) func(*statusAnswer) {
		return func(a *statusAnswer) { a.Peerings[0].State, a.Peerings[0].Reason = health.Degraded, reason }
	}
	all := func(changes ...func(*statusAnswer)) statusAnswer {
		a := statusAnswer{Peerings: peerings()}
		for _, change := range changes {
			change(&a)
		}
		return a
	}
	disagreement := func(a *statusAnswer) {
		a.Peerings[0].Cluster, a.Peerings[1].Cluster = "a", "b"
		a.Disagreements = []status.Disagreement{{About: "MTU", Local: "1420", Remote: "1300"}}
	}
	for name, c := range map[string]struct {
		before, after statusAnswer
		want          string
	}{
		"nothing":      {all(), all(), ""},
		"measurements": {all(), all(func(a *statusAnswer) { a.Peerings[0].Gateways[0].Tunnels[0].RxBytes = 7 }), ""},
		"a state": {
			all(), all(degraded("no echo between gateway and node eu-3\x1b[2J")),
			"12:00:00 b degraded, nodes 2/2: no echo between gateway and node eu-3\\x1b[2J\n",
		},
		"a reason":                 {all(degraded("node eu-3 is lost")), all(degraded("node eu-4 is lost")), "12:00:00 b degraded, nodes 2/2: node eu-4 is lost\n"},
		"the age in a reason":      {all(degraded("answered last 8s ago")), all(degraded("answered last 1m5s ago")), ""},
		"the share in a reason":    {all(degraded("2.5 % are lost")), all(degraded("48 % are lost")), ""},
		"a node":                   {all(), all(func(a *statusAnswer) { a.Peerings[0].Nodes.Total = 3 }), "12:00:00 b healthy, nodes 2/3\n"},
		"another peering":          {all(func(a *statusAnswer) { a.Peerings = a.Peerings[:1] }), all(), "12:00:00 c connecting, nodes 0/2: the gateway has not reported yet\n"},
		"a peering less":           {all(), all(func(a *statusAnswer) { a.Peerings = a.Peerings[:1] }), "12:00:00 c: removed\n"},
		"a disagreement":           {all(), all(disagreement), "12:00:00 a and b disagree on MTU: 1420 in a; 1300 in b\n"},
		"a disagreement that ends": {all(disagreement), all(), "12:00:00 no longer: a and b disagree on MTU: 1420 in a; 1300 in b\n"},
		"a warning": {
			all(), all(func(a *statusAnswer) { a.Peerings[1].Warnings = []string{"clocks differ"} }),
			"12:00:00 c: warning: clocks differ\n",
		},
	} {
		if got := new(statusOptions).changes(now, c.before, c.after); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if text := (statusOptions{coloured: true}).changes(now, all(), all(degraded("x"))); !strings.Contains(text, "\x1b[33mdegraded\x1b[0m,") {
		t.Errorf("%q", text)
	}
}
