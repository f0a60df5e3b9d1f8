package commands

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newVersion(env *Env) *cobra.Command {
	output := formatText
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of liqoctl",
		Args:  arguments(),
		RunE:  func(*cobra.Command, []string) error { return printVersion(env, output) },
	}
	enumFlag(cmd, &output, "output", "o", "how to print it", formatText, formatJSON)
	return cmd
}

func printVersion(env *Env, output format) error {
	if output != formatText {
		return output.encode(env.Out, env.Build)
	}
	commit := ""
	if env.Build.Commit != "" {
		commit = " commit " + env.Build.Commit
	}
	_, err := fmt.Fprintf(env.Out, "liqoctl %s%s (%s, %s)\n", env.Build.Version, commit, env.Build.Go, env.Build.Platform)
	return err
}
