package commands

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
)

// all calls a function for every visible command.
func all(cmd *cobra.Command, do func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	do(cmd)
	for _, sub := range cmd.Commands() {
		all(sub, do)
	}
}

func TestHelpFitsTheTerminal(t *testing.T) {
	for _, columns := range []int{60, 80, 100} {
		env := &cli.Env{Columns: columns}
		env.Start(false)
		all(New(env), func(cmd *cobra.Command) {
			var b strings.Builder
			cmd.SetOut(&b)
			env.HelpAll(cmd)
			for line := range strings.Lines(b.String()) {
				line = strings.TrimSuffix(line, "\n")
				// Lines to be copied are not wrapped, nor are names longer than a line.
				if len(line) > columns && !strings.HasPrefix(line, "  ") {
					t.Errorf("%s at %d columns: %q", cmd.CommandPath(), columns, line)
				}
				if strings.HasPrefix(line, strings.Repeat(" ", 30)) && len(line) > columns && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("%s at %d columns: %q", cmd.CommandPath(), columns, line)
				}
			}
		})
	}
}

// TestExamples: every command has an example, and the flags in it exist.
func TestExamples(t *testing.T) {
	env := &cli.Env{}
	env.Start(false)
	all(New(env), func(cmd *cobra.Command) {
		if !strings.Contains(cmd.Example, cli.ProgramName) {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			_, line, _ = strings.Cut(line, cli.ProgramName+" ")
			line = strings.ReplaceAll(strings.TrimSuffix(line, ")"), "$JOB_ID", "7")
			var args []string
			for _, word := range strings.Fields(line) {
				if word == "|" || word == ">" {
					break
				}
				args = append(args, strings.Trim(word, `"'`))
			}
			if len(args) == 0 {
				continue
			}
			root := New(env) // repeated flags would accumulate
			found, rest, err := root.Find(args)
			if err != nil || found == root || found.HasSubCommands() {
				t.Errorf("%s: example %q: no such command: %v", cmd.CommandPath(), line, err)
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), line, err)
			} else if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), line, err)
			}
		}
	})
}

// TestScreens checks that short help names flags that exist, fits a terminal, and leads to the rest.
func TestScreens(t *testing.T) {
	env := &cli.Env{}
	env.Start(false)
	screens := 0
	all(New(env), func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("help-all") == nil {
			return
		}
		screens++
		var b strings.Builder
		cmd.SetOut(&b)
		cmd.InitDefaultHelpFlag()
		env.Help(cmd)
		if lines := strings.Count(b.String(), "\n"); lines > 40 {
			t.Errorf("%s: %d lines", cmd.CommandPath(), lines)
		}
		for line := range strings.Lines(b.String()) {
			if len(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s: %q", cmd.CommandPath(), line)
			}
		}
		for _, found := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(b.String(), -1) {
			if cmd.Flag(found[1]) == nil {
				t.Errorf("%s has no flag --%s", cmd.CommandPath(), found[1])
			}
		}
	})
	if screens == 0 {
		t.Error("no command has short help")
	}
}
