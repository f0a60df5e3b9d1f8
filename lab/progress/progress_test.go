package progress

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/lab/require"
)

func TestLogOfALongStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		err := New(&out).Step("build kube", func(n *Note) error {
			n.Set("3 packages compiled")
			time.Sleep(31 * time.Second) //nolint:forbidigo // synctest's clock
			return nil
		})
		require.NoError(t, err)
		want := "build kube: 15s, 3 packages compiled\n" +
			"build kube: 30s, 3 packages compiled\n" +
			"build kube: 31s, 3 packages compiled, done\n"
		if out.String() != want {
			t.Errorf("got:\n%swant:\n%s", out.String(), want)
		}
	})
}

func TestTerminalLineIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := New(&out)
		r.terminal = true
		err := r.Step("x", func(*Note) error {
			time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // as above
			return nil
		})
		require.NoError(t, err)
		if want := "\r\x1b[Kx: 1s\r\x1b[Kx: 2s, done\n"; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
}

func TestFailedStepIsNotDone(t *testing.T) {
	var out bytes.Buffer
	broken := errors.New("broken")
	if err := New(&out).Step("x", func(*Note) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if strings.Contains(out.String(), "done") {
		t.Errorf("said %q of a failed step", out.String())
	}
}
