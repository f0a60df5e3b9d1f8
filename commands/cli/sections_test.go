package cli_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"liqonet.io/liqonet/commands"
	"liqonet.io/liqonet/commands/cli"
)

// TestSections: a flag that help is to show in a group exists.
func TestSections(t *testing.T) {
	known := make(map[string]bool)
	env := &cli.Env{}
	env.Start()
	root := commands.New(env)
	root.InitDefaultHelpFlag()
	visit(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	})
	for title, flags := range cli.FlagsOfSections() {
		for name := range strings.FieldsSeq(flags) {
			if !known[name] {
				t.Errorf("%s: no command has --%s", title, name)
			}
		}
	}
}

// visit calls a function for every command that users see.
func visit(cmd *cobra.Command, do func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	do(cmd)
	for _, sub := range cmd.Commands() {
		visit(sub, do)
	}
}
