package cli

import (
	"fmt"
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
			return unknownCommand(cmd, args[0])
		},
	}
}

// unknownCommand returns the error for a name that is no command of a group.
func unknownCommand(cmd *cobra.Command, name string) error {
	err := Usagef("%s: unknown command %q", cmd.CommandPath(), name)
	if other := meant(cmd, name); other != nil {
		err.Advice = fmt.Sprintf("did you mean %q?", other.CommandPath())
	}
	return err
}

// destructive are the commands and flags that are never suggested: a user who repeats a hint must not lose anything.
var destructive = map[string]bool{"disconnect": true, "reset": true, "unexpose": true, "release": true, "rotate-keys": true,
	"test": true, // it starts pods
	// Flags.
	"force": true, "remove": true, "yes": true}

// meanings are words of other programs, by the command that does what they mean. None of these commands removes
// anything.
var meanings = map[string]string{
	"status":   "list ls get show info peers graph",
	"connect":  "join peer add",
	"diagnose": "check doctor debug",
	"report":   "logs gather sysdump bugreport",
	"trace":    "traceroute path",
}

// meant returns the command that an unknown name means: one by meaning, one of a group where no group is named, or one
// with a similar name; nil: there is none.
func meant(cmd *cobra.Command, name string) *cobra.Command {
	places := []*cobra.Command{cmd}
	if cmd == cmd.Root() {
		places = append(places, slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() })...)
	}
	for _, place := range places {
		for _, sub := range place.Commands() {
			is := sub.Name() == name || slices.Contains(strings.Fields(meanings[sub.Name()]), name)
			if is && sub.IsAvailableCommand() && !destructive[sub.Name()] {
				return sub
			}
		}
	}
	if name == "" { // each name begins with it
		return nil
	}
	near, _, err := cmd.Find([]string{suggestion(cmd, name)})
	if err != nil || near == cmd {
		return nil
	}
	return near
}

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
