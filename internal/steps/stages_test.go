package steps

import (
	"errors"
	"fmt"
	"testing"

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
