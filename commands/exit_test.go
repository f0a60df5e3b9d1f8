package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/steps"
	"liqonet.io/liqonet/ipam"
)

// succeed is an operation of one stage that returns its options.
func succeed(_ context.Context, o int, r steps.Reporter) (int, error) {
	r.Stage("reach")
	r.Done("reach", "", time.Second)
	return o, nil
}

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
		{t.Context(), usagef("x"), ExitUsage},
		{t.Context(), fmt.Errorf("x: %w", usagef("y")), ExitUsage},
		{t.Context(), fmt.Errorf("reach: %w", &steps.InputError{Err: errors.New("the same cluster")}), ExitUsage},
		{t.Context(), errUnhealthy, ExitUnhealthy},
		{t.Context(), hint.With(errRemains, "x"), ExitUnhealthy},
		{t.Context(), hint.With(errPaths, "x"), ExitUnhealthy},
		{t.Context(), errTraced, ExitUnhealthy},
		{t.Context(), hint.With(errUnverified, "x"), ExitUnhealthy},
		{t.Context(), fmt.Errorf("reserve pods: %w", ipam.ErrNoneFree), ExitNoneFree},
		{interrupted, fmt.Errorf("wait: %w", context.Canceled), ExitInterrupted},
		{interrupted, nil, ExitOK},
	} {
		if got := exitCode(c.ctx, c.err); got != c.want {
			t.Errorf("exit code of %v is %d, want %d", c.err, got, c.want)
		}
	}
}

// TestExitCodeOfFaultsIsDocumented: the table of exit codes has each command whose help speaks of code 3.
func TestExitCodeOfFaultsIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(text), "\n| 3 | ")
	row, _, _ = strings.Cut(row, "\n")
	pages, err := filepath.Glob(filepath.Join("..", "docs", "cli", "liqoctl_*.md"))
	if err != nil {
		t.Fatal(err)
	}
	code, found := regexp.MustCompile(`exit\s+code\b[^.]*\b3\b`), 0
	for _, page := range pages {
		help, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
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
		{usagef("x"), ""},
		{usagef("x: %w", advice), "do this"},
		{errors.Join(usagef("x"), advice), "do this"},
	} {
		if got := hint.Of(c.err); got != c.want {
			t.Errorf("hint of %v is %q, want %q", c.err, got, c.want)
		}
	}
}

func TestProgressInPlainLines(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, false, false)
	p.Stage("reach")
	p.Stage("discover")
	p.Done("reach", "a v1.36.3, b v1.36.3", 300*time.Millisecond)
	p.Note("IPv6 ranges are left out")
	p.Warn("node n is not Ready", "kubectl describe node n")
	p.fail(errors.New("discover: no pod CIDR"), "set it with --pod-cidr")
	want := `reach: a v1.36.3, b v1.36.3 (0.3s)
IPv6 ranges are left out
warning: node n is not Ready
hint: kubectl describe node n
error: discover: no pod CIDR
hint: set it with --pod-cidr
`
	if got := out.String(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestSlowStageInPlainLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := newProgress(&out, false, false)
		p.Stage("reach")
		p.Done("reach", "", time.Second)
		p.Stage("nodes")
		<-time.After(slowStage + 1)
		synctest.Wait()
		p.Done("nodes", "", slowStage)
		if got, want := out.String(), "reach (1.0s)\nnodes ...\nnodes (3.0s)\n"; got != want {
			t.Errorf("got:\n%swant:\n%s", got, want)
		}
	})
}

func TestProgressOnATerminal(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, true, true)
	p.Stage("reach")
	p.Done("reach", "both", time.Second)
	p.Stage("discover")
	p.stop()
	if p.spinner != nil {
		t.Error("the spinner still turns")
	}
	if got := out.String(); !strings.Contains(got, "✓ ") || !strings.Contains(got, "reach: both") {
		t.Errorf("got %q", got)
	}
}

func TestProgressWithoutColour(t *testing.T) {
	for _, variable := range []string{"NO_COLOR=1", "TERM=dumb"} {
		env := &Env{Environ: []string{variable}}
		if env.colours() {
			t.Errorf("colours with %s", variable)
		}
	}
	var out strings.Builder
	p := newProgress(&out, true, false)
	p.Stage("reach")
	p.Done("reach", "", time.Second)
	p.fail(errors.New("x"), "y")
	if got := out.String(); strings.Contains(got, "\x1b[3") || !strings.Contains(got, "error: x\nhint: y\n") {
		t.Errorf("got %q", got)
	}
}

// TestInterrupted: the user knows why it ended, and needs no advice.
func TestInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var said strings.Builder
	code := Run(ctx, &Env{Out: t.Output(), Err: &said}, []string{"network", "status", "--kubeconfig", file})
	if got := said.String(); code != ExitInterrupted || !strings.HasSuffix(got, ": interrupted\n") || strings.Contains(got, "hint:") {
		t.Errorf("exit code %d, said %q", code, got)
	}
}
