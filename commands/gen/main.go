// Command gen writes the reference of the command line: Markdown pages for docs/cli, or manual pages for releases; and
// the table of rights in a page.
//
//	go run ./commands/gen markdown docs/cli
//	go run ./commands/gen man dist/man
//	go run ./commands/gen rights docs/security.md
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"liqonet.io/liqonet/commands"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(commands.ExitFailure)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: gen markdown|man FOLDER, gen rights PAGE")
	}
	write, ok := map[string]func(string) error{"markdown": markdown, "man": man, "rights": rights}[args[0]]
	if !ok {
		return fmt.Errorf("no such kind of reference: %s", args[0])
	}
	if err := write(args[1]); err != nil {
		return fmt.Errorf("write %s to %s: %w", args[0], args[1], err)
	}
	return nil
}

// tree returns the commands as users see them. Dates and tags of a build are left out: the pages change only
// when the commands do.
func tree() *cobra.Command {
	root := commands.New(&commands.Env{})
	root.DisableAutoGenTag = true
	// Cobra adds it when a command line runs.
	root.InitDefaultCompletionCmd()
	return root
}

// markdown replaces the pages in a folder: those of commands that are gone go too.
func markdown(folder string) error {
	old, err := filepath.Glob(filepath.Join(folder, "liqoctl*.md"))
	if err != nil {
		return err
	}
	for _, page := range old {
		if err := os.Remove(page); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return doc.GenMarkdownTree(tree(), folder)
}

// man writes manual pages. Their date is that of SOURCE_DATE_EPOCH, else today.
func man(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return doc.GenManTree(tree(), &doc.GenManHeader{Title: "LIQOCTL", Section: "1"}, folder)
}
