package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// ProgramName is the name of the program in help and examples.
const ProgramName = "liqoctl"

// Group returns a command that only holds others: alone it prints its help, with an argument that names none
// of them it is a usage error.
func Group(name, short, long, example string) *cobra.Command {
	return &cobra.Command{
		Use:     name,
		Short:   short,
		Long:    strings.TrimSpace(long),
		Example: strings.Trim(example, "\n"),
		Args:    cobra.ArbitraryArgs,
		// The number of letters that a mistyped command may be off for a suggestion.
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			err := Usagef("%s: unknown command %q", cmd.CommandPath(), args[0])
			if near := suggestion(cmd, args[0]); near != "" {
				err.Advice = cmd.CommandPath() + " " + near
			}
			return err
		},
	}
}

// destructive are the commands and flags that are never suggested: a user who repeats a hint must not lose anything.
var destructive = map[string]bool{"disconnect": true, "reset": true, "unexpose": true, "release": true,
	// Flags.
	"force": true, "remove": true, "yes": true}

// suggestion returns the command for a mistyped name; "" if the name may mean a destructive command, or an inverse
// ("unreserve" is not "reserve").
func suggestion(cmd *cobra.Command, name string) string {
	all := cmd.SuggestionsFor(name)
	if len(all) == 0 || slices.ContainsFunc(all, func(near string) bool { return destructive[near] }) {
		return ""
	}
	for _, inverse := range []string{"un", "de", "dis"} {
		if strings.HasPrefix(name, inverse) != strings.HasPrefix(all[0], inverse) {
			return ""
		}
	}
	return all[0]
}

// Arguments refuses a number of arguments other than that of the names. Names in brackets may be left out.
func Arguments(names ...string) cobra.PositionalArgs {
	least := 0
	for _, name := range names {
		if !strings.HasPrefix(name, "[") {
			least++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usagef("%s: %s is required", cmd.CommandPath(), names[len(args)])
		case len(args) > len(names):
			return Usagef("%s: unexpected argument %q", cmd.CommandPath(), args[len(names)])
		}
		return nil
	}
}
