package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/testbed/require"
)

// succeed is an operation of one stage that returns its options.
func succeed(_ context.Context, o int, r progress.Reporter) (int, error) {
	r.Stage("reach")
	r.Done("reach", "", time.Second)
	return o, nil
}

func TestPerformPrintsTheResultOnStandardOutput(t *testing.T) {
	var out, stderr strings.Builder
	env := &Env{Out: &out, Err: &stderr}
	env.Start()
	_, err := perform(t.Context(), env, succeed, 7, ui.FormatText, func(b *strings.Builder, r int) { b.WriteString(strings.Repeat("x", r)) })
	require.NoError(t, err)
	if got, want := out.String(), "xxxxxxx"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	out.Reset()
	_, err = perform(t.Context(), env, succeed, 7, ui.FormatJSON, func(*strings.Builder, int) {})
	require.NoError(t, err)
	if got, want := out.String(), "7\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	if got, want := stderr.String(), strings.Repeat("reach (1.0s)\n", 2); got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	out.Reset()
	cause := errors.New("cause")
	_, err = perform(t.Context(), env, func(context.Context, int, progress.Reporter) (int, error) { return 0, cause }, 7, ui.FormatJSON, nil)
	if !errors.Is(err, cause) || out.String() != "" {
		t.Errorf("error %v, stdout %q after a failure", err, out.String())
	}
}
