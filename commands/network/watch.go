package network

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inspect/status"
)

// printChanges prints the answer, then a line for each change, until a signal ends it. Programs get the whole answer
// after each report.
func (o statusOptions) printChanges(ctx context.Context, env *cli.Env, do statusActions) error {
	var last *statusAnswer // nil: none yet
	err := do.watch(ctx, o.Options, func(all []status.Peering) error {
		a, before := o.answer(all), last
		last = &a
		if before != nil && !o.output.Structured() {
			_, err := io.WriteString(env.Out, o.changes(time.Now(), *before, a))
			return err
		}
		if o.output == ui.FormatYAML {
			if _, err := io.WriteString(env.Out, "---\n"); err != nil {
				return err
			}
		}
		return o.print(env.Out, a)
	}, env.Lost("watch"))
	return cmp.Or(err, cli.ErrInterrupted)
}

// measurement matches a duration or a share in a reason, which differs in every report.
var measurement = regexp.MustCompile(`\b[\d.]+([hms][\dhms.]*| %)`)

// changes returns lines for the differences between two answers, ignoring measurements.
func (o statusOptions) changes(now time.Time, before, after statusAnswer) string {
	same := func(a string) func(string) bool {
		a = measurement.ReplaceAllString(a, "")
		return func(b string) bool { return measurement.ReplaceAllString(b, "") == a }
	}
	var b strings.Builder
	add := func(format, line string) {
		fmt.Fprintf(&b, "%s "+format+"\n", now.Format(time.TimeOnly), line)
	}
	states, notes := o.lines(before)
	newStates, newNotes := o.lines(after)
	for _, line := range slices.Concat(newStates, newNotes) {
		if !slices.ContainsFunc(slices.Concat(states, notes), same(line)) {
			add("%s", line)
		}
	}
	for _, line := range notes {
		if !slices.ContainsFunc(newNotes, same(line)) {
			add("no longer: %s", line)
		}
	}
	for _, p := range before.Peerings {
		if !slices.ContainsFunc(after.Peerings, func(q status.Peering) bool { return o.subject(q) == o.subject(p) }) {
			add("%s: removed", ui.VisibleCell(o.subject(p)))
		}
	}
	return b.String()
}

// lines returns a line with the state of each peering, and warnings and disagreements.
func (o statusOptions) lines(a statusAnswer) (states, notes []string) {
	for _, p := range a.Peerings {
		states = append(states, fmt.Sprintf("%s %s, nodes %d/%d%s",
			ui.VisibleCell(o.subject(p)), o.paint(ui.VisibleCell(string(p.State))), p.Nodes.Ready, p.Nodes.Total, because(p.Reason)))
	}
	var b strings.Builder
	o.notes(&b, a, false)
	return states, strings.FieldsFunc(b.String(), func(r rune) bool { return r == '\n' })
}
