package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/records"
)

// Widths in help: lines are limited to a readable length, and descriptions of flags are aligned.
const (
	defaultColumns = 80
	mostColumns    = 110
	flagColumn     = 30
)

// groupAnnotation is the annotation of a flag with the title of its group in help.
const groupAnnotation = "group"

// Grouped shows a flag in a group of help.
func Grouped(f *pflag.Flag, group string) {
	f.Annotations = map[string][]string{groupAnnotation: {group}}
}

// sections are the groups of flags in help, in order. A flag is in the group of its annotation, or in the one whose
// list contains its name, else in the first one.
var sections = []struct{ title, flags string }{
	{"Flags", ""},
	{records.GroupGateways, "server-side gateways remote-gateways"},
	{records.GroupTunnel, ""},
	{"Installation", "image overlay allow-forward update all-nodes skip-validation"},
	{"Cluster", "kubeconfig context cluster user as as-group namespace request-timeout"},
	{"Addresses", "name pod-cidr service-cidr node-network reserve pool external-cidr internal-cidr"},
	{"Remote cluster", "remote-kubeconfig remote-context remote-cluster remote-user remote-as remote-as-group remote-namespace"},
	{"Remote addresses", "remote-name remote-pod-cidr remote-service-cidr remote-node-network remote-reserve remote-pool remote-external-cidr remote-internal-cidr"},
	{"Global flags", "config verbose log-requests help help-all"},
}

// screenAnnotation is the annotation of a command with what its --help shows.
const screenAnnotation = "screen"

// Screen gives a command with many flags a text for --help that fits a terminal. The flag --help-all shows the rest.
func (e *Env) Screen(cmd *cobra.Command, text string) {
	cmd.Annotations = map[string]string{screenAnnotation: strings.TrimSpace(text)}
	var all bool
	ui.BoolFlag(cmd.Flags(), &all, "help-all", "help with all flags")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if all {
			e.HelpAll(cmd)
			return nil
		}
		return run(cmd, args)
	}
}

// Help writes what a command does and takes, in short if it has a screen.
func (e *Env) Help(cmd *cobra.Command) {
	if screen := cmd.Annotations[screenAnnotation]; screen != "" {
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n\nAll flags: %s --help-all\n", e.Called(screen), cmd.CommandPath())
		return
	}
	e.HelpAll(cmd)
}

// HelpAll writes all that a command does and takes.
func (e *Env) HelpAll(cmd *cobra.Command) {
	w, columns := cmd.OutOrStdout(), min(cmp.Or(e.Columns, defaultColumns), mostColumns)
	io.WriteString(w, wrap(e.Called(cmp.Or(cmd.Long, cmd.Short)), columns, 0)) //nolint:errcheck // as cobra does
	fmt.Fprintf(w, "\nUsage:\n")
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	} else {
		fmt.Fprintf(w, "  %s COMMAND [flags]\n", cmd.CommandPath())
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(w, "\nAliases: %s\n", cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", e.Called(cmd.Example))
	}
	writeCommands(w, cmd)
	writeFlags(w, cmd, columns)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nHelp for a command: %s COMMAND --help\n", cmd.CommandPath())
	}
}

// writeCommands writes the subcommands of a command by group.
func writeCommands(w io.Writer, cmd *cobra.Command) {
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands"}}
	}
	for _, g := range groups {
		title := "\n" + g.Title + ":\n"
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.GroupID == g.ID {
				fmt.Fprintf(w, "%s  %-*s  %s\n", title, len("rotate-keys"), sub.Name(), sub.Short)
				title = ""
			}
		}
	}
}

// writeFlags writes the flags of a command by group, those without a group first.
func writeFlags(w io.Writer, cmd *cobra.Command, columns int) {
	grouped := make(map[string][]*pflag.Flag)
	add := func(f *pflag.Flag) {
		title := sections[0].title
		for _, s := range sections {
			if slices.Contains(f.Annotations[groupAnnotation], s.title) || strings.Contains(" "+s.flags+" ", " "+f.Name+" ") {
				title = s.title
			}
		}
		if !f.Hidden {
			grouped[title] = append(grouped[title], f)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	for _, s := range sections {
		if len(grouped[s.title]) > 0 {
			fmt.Fprintf(w, "\n%s:\n", s.title)
		}
		for _, f := range grouped[s.title] {
			writeFlag(w, f, columns)
		}
	}
}

// writeFlag writes a flag and its description, on the same line if there is room, else below.
func writeFlag(w io.Writer, f *pflag.Flag, columns int) {
	left := "      --" + f.Name
	if f.Shorthand != "" {
		left = "  -" + f.Shorthand + ", --" + f.Name
	}
	kind, usage := pflag.UnquoteUsage(f)
	if kind != "" {
		left += " " + kind
	}
	if zero := f.DefValue == "" || f.DefValue == "0" || f.DefValue == "false" || f.DefValue == "[]"; !zero && !strings.Contains(usage, "(default") {
		usage += " (default " + f.DefValue + ")"
	}
	text := strings.TrimLeft(wrap(usage, columns, flagColumn), " ")
	if len(left)+2 > flagColumn {
		fmt.Fprintf(w, "%s\n%*s%s", left, flagColumn, "", text)
		return
	}
	fmt.Fprintf(w, "%-*s%s", flagColumn, left, text)
}

// wrap wraps the paragraphs of a text at a width. It does not change lines that begin with a blank.
func wrap(text string, columns, indent int) string {
	var b strings.Builder
	column := 0
	end := func() {
		if column > 0 {
			b.WriteByte('\n')
			column = 0
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == ' ' || line[0] == '\t' {
			end()
			b.WriteString(line + "\n")
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if column > 0 && column+1+len(word) > columns {
				end()
			}
			if column == 0 {
				b.WriteString(strings.Repeat(" ", indent) + word)
				column = indent + len(word)
				continue
			}
			b.WriteString(" " + word)
			column += 1 + len(word)
		}
	}
	end()
	return b.String()
}
