package incluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
)

func TestHelperVerifyReports(t *testing.T) {
	file := filepath.Join(t.TempDir(), "termination-log")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "rule 7600\nlink lqn-overlay\n"},
		{[]string{"--remove"}, ""},
	} {
		cmd := newHelperVerify(func(remove bool) ([]string, error) {
			if remove {
				return nil, nil
			}
			return []string{"rule 7600", "link lqn-overlay"}, nil
		})
		cmd.SetArgs(append(c.args, "--report", file))
		require.NoError(t, cmd.ExecuteContext(t.Context()))
		if got, err := os.ReadFile(file); err != nil || string(got) != c.want {
			t.Errorf("%v: %q, %v, want %q", c.args, got, err, c.want)
		}
	}
	cause := errors.New("no kernel")
	cmd := newHelperVerify(func(bool) ([]string, error) { return nil, cause })
	cmd.SetArgs([]string{"--report", file})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
}

// TestReportFits: a long report ends with a complete line, and reports that lines were omitted.
func TestReportFits(t *testing.T) {
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("route 10.11.%d.0/24 table 7600", i))
	}
	got := terminationReport(lines)
	told := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if last := told[len(told)-1]; len(got) > maxReport || last != fmt.Sprintf("and %d more", len(lines)-len(told)+1) {
		t.Errorf("%d bytes, at the end %q", len(got), last)
	}
}
