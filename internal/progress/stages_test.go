package progress

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/hint"
)

func TestHintOf(t *testing.T) {
	cause := hint.With(errors.New("x"), "do this")
	tests := []struct {
		err  error
		want string
	}{
		{&StageError{Stage: "s", Err: errors.New("x"), hint: "look there"}, "look there"},
		{&StageError{Stage: "s", Err: fmt.Errorf("a: %w", cause), hint: "look there"}, "do this"},
		{errors.Join(errors.New("y"), cause), "do this"},
		{&StageError{Stage: "s", Err: errors.New("x")}, ""},
	}
	for _, tt := range tests {
		if got := hint.Of(tt.err); got != tt.want {
			t.Errorf("%v: %q", tt.err, got)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	for _, tt := range []struct {
		timeout time.Duration
		nodes   int
		want    time.Duration
	}{
		{0, 0, 2 * time.Minute}, {0, 9, 2 * time.Minute}, {0, 100, 130 * time.Second}, {0, 1000, 220 * time.Second}, {0, 5000, 620 * time.Second},
		{time.Minute, 1000, time.Minute},
	} {
		if got := TimeLimit(tt.timeout, tt.nodes); got != tt.want {
			t.Errorf("%d nodes, --timeout %s: %s, want %s", tt.nodes, tt.timeout, got, tt.want)
		}
	}
}
