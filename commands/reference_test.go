package commands_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra/doc"

	"liqonet.io/liqonet/commands"
	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestReference: docs/cli describes exactly the existing commands. The pages change only when the commands do: dates
// and versions of a build are omitted.
func TestReference(t *testing.T) {
	const committed = "../docs/cli"
	root, folder := commands.New(&cli.Env{}), t.TempDir()
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd() // Cobra adds it when a command runs
	require.NoError(t, doc.GenMarkdownTree(root, folder))
	fresh, err := os.ReadDir(folder)
	if err != nil || len(fresh) == 0 {
		t.Fatal(fresh, err)
	}
	for _, page := range fresh {
		text, err := os.ReadFile(filepath.Join(folder, page.Name()))
		require.NoError(t, err)
		golden.File(t, filepath.Join(committed, page.Name()), string(text))
	}
	pages, err := filepath.Glob(filepath.Join(committed, "liqoctl*.md"))
	require.NoError(t, err)
	for _, page := range pages {
		if _, err := os.Stat(filepath.Join(folder, filepath.Base(page))); err != nil {
			golden.Gone(t, page)
		}
	}
}
