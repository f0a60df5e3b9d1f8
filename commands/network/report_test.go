package network

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/inspect/report"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestReportFile: the archive is a new file, readable only by its owner, and lists what could not be read.
func TestReportFile(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "report.tar.gz"), filepath.Join(dir, "other")
	require.NoError(t, os.Symlink(other, file))
	var got report.Options
	err := parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
		return newReport(env, local, func(_ context.Context, o report.Options, _ progress.Reporter) (report.Result, error) {
			got = o
			return report.Result{Files: 3}, nil
		})
	}, file, "--remote-context", "b")
	if err != nil || got.Cluster == nil || got.Remote == nil || got.Timeout != progress.DefaultTimeout {
		t.Fatalf("%v, %+v", err, got)
	}
	if _, err := os.Lstat(other); err == nil {
		t.Error("the link was followed")
	}
	if s, err := os.Lstat(file); err != nil || s.Mode() != 0o600 {
		t.Errorf("%v, %v", s, err)
	}
	text := described(describeReport, report.Result{File: "f\x1b", Files: 3, Unread: []string{"logs: no\nhint: evil"}})
	if strings.Contains(text, "\x1b") || strings.Contains(text, "\nhint") || !strings.Contains(text, "not read: logs") {
		t.Errorf("%q", text)
	}
}
