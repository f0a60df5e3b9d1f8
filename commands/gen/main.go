// Command gen writes the manual pages of the command line, for releases:
//
//	go run ./commands/gen dist/man
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"liqonet.io/liqonet/commands"
	"liqonet.io/liqonet/commands/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(cli.ExitFailure)
	}
}

// run writes the pages to a folder. Their date is SOURCE_DATE_EPOCH, else today.
func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: gen FOLDER")
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	root := commands.New(&cli.Env{})
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd() // Cobra adds it when a command runs
	return doc.GenManTree(root, &doc.GenManHeader{Title: "LIQOCTL", Section: "1"}, args[0])
}
