package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

func TestExitCode(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), nil, ExitOK},
		{t.Context(), errors.New("x"), ExitFailure},
		{t.Context(), context.DeadlineExceeded, ExitFailure},
		{t.Context(), Usagef("x"), ExitUsage},
		{t.Context(), fmt.Errorf("x: %w", Usagef("y")), ExitUsage},
		{t.Context(), fmt.Errorf("reach: %w", &progress.InputError{Err: errors.New("the same cluster")}), ExitUsage},
		{t.Context(), ErrUnhealthy, ExitUnhealthy},
		{t.Context(), hint.With(ErrRemains, "x"), ExitUnhealthy},
		{t.Context(), hint.With(ErrPaths, "x"), ExitUnhealthy},
		{t.Context(), ErrTraced, ExitUnhealthy},
		{t.Context(), hint.With(ErrUnverified, "x"), ExitUnhealthy},
		{t.Context(), fmt.Errorf("reserve pods: %w", ipam.ErrNoneFree), ExitNoneFree},
		{interrupted, fmt.Errorf("wait: %w", context.Canceled), ExitInterrupted},
		{interrupted, nil, ExitOK},
	} {
		if got := ExitCode(c.ctx, c.err); got != c.want {
			t.Errorf("exit code of %v is %d, want %d", c.err, got, c.want)
		}
	}
}

// TestExitCodeOfFaultsIsDocumented: the table of exit codes has each command whose help speaks of code 3.
func TestExitCodeOfFaultsIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "monitoring.md"))
	require.NoError(t, err)
	_, row, _ := strings.Cut(string(text), "\n| 3 | ")
	row, _, _ = strings.Cut(row, "\n")
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "cli", "liqoctl_*.md"))
	require.NoError(t, err)
	code, found := regexp.MustCompile(`exit\s+code\b[^.]*\b3\b`), 0
	for _, page := range pages {
		help, err := os.ReadFile(page)
		require.NoError(t, err)
		if !code.Match(help) {
			continue
		}
		found++
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(page), "liqoctl_"), ".md")
		if name = strings.ReplaceAll(name, "_", " "); !strings.Contains(row, "`"+name+"`") {
			t.Errorf("%s is not in the row of exit code 3: %s", name, row)
		}
	}
	if found < 7 {
		t.Errorf("only %d commands", found)
	}
}

func TestHint(t *testing.T) {
	advice := hint.With(errors.New("cause"), "do this")
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("x"), ""},
		{advice, "do this"},
		{fmt.Errorf("x: %w", advice), "do this"},
		{errors.Join(errors.New("x"), advice), "do this"},
		{Usagef("x"), ""},
		{Usagef("x: %w", advice), "do this"},
		{errors.Join(Usagef("x"), advice), "do this"},
	} {
		if got := hint.Of(c.err); got != c.want {
			t.Errorf("hint of %v is %q, want %q", c.err, got, c.want)
		}
	}
}

func TestColours(t *testing.T) {
	for _, variable := range []string{"NO_COLOR=1", "TERM=dumb"} {
		env := &Env{Environ: []string{variable}}
		if env.Colours() {
			t.Errorf("colours with %s", variable)
		}
	}
}
