package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/testbed/require"
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
		env.Start()
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
	env.Start()
	all(New(env), func(cmd *cobra.Command) {
		if !strings.Contains(cmd.Example, cli.ProgramName) {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			if err := parses(env, line); err != nil {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), line, err)
			}
		}
	})
}

// parses returns an error if a line contains a command of liqoctl that does not exist, or not with these flags and
// arguments.
func parses(env *cli.Env, line string) error {
	_, line, _ = strings.Cut(line, cli.ProgramName+" ")
	line = strings.NewReplacer("$JOB_ID", "7", "$LIQOCTL_IMAGE", "registry.example/liqonet:v1", "-port PORT", "-port 443", "$lb-", "example.com/lb-").Replace(strings.TrimSuffix(line, ")"))
	var args []string
	for _, word := range strings.Fields(line) {
		if strings.ContainsAny(word, "|>;#&") && !strings.Contains(word, "=") {
			if before, isLast := strings.CutSuffix(word, ";"); isLast && before != "" {
				args = append(args, before)
			}
			break
		}
		args = append(args, strings.Trim(word, `"'`))
	}
	if len(args) == 0 {
		return nil
	}
	root := New(env) // repeated flags would accumulate
	found, rest, err := root.Find(args)
	if err != nil || found == root || found.HasSubCommands() {
		return fmt.Errorf("no such command: %w", err)
	}
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	return found.ValidateArgs(found.Flags().Args())
}

// commandLine matches a command to copy in a page, or after a label in an answer.
var commandLine = regexp.MustCompile(`^(?:    (?:\$ )?|next: |  next: |  explain: )liqoctl .*`)

// TestCommandsToCopy: commands in pages for users and in answers can be run as they are printed.
func TestCommandsToCopy(t *testing.T) {
	env := &cli.Env{}
	env.Start()
	var files []string
	for _, pattern := range []string{"../README.md", "../docs/*.md", "../docs/clouds/*.md", "network/testdata/*.golden"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	commands := 0
	for _, file := range files {
		if strings.HasSuffix(file, "-hostile.golden") { // whose names are not for this parser
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.SplitSeq(strings.ReplaceAll(string(text), "\\\n", " "), "\n") {
			if !commandLine.MatchString(line) {
				continue
			}
			commands++
			if err := parses(env, line); err != nil {
				t.Errorf("%s: %q: %v", file, line, err)
			}
		}
	}
	if commands < 60 {
		t.Errorf("only %d commands found", commands)
	}
}
