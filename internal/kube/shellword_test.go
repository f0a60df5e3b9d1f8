package kube

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// hostile is a context name that contains shell commands.
const hostile = "a; touch /tmp/x && `id` $(id) \"$HOME\" 'b' \\ \n* ~ #c"

func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"admin@prod": "admin@prod", "arn:aws:eks:eu-south-1:1:cluster/a_b": "arn:aws:eks:eu-south-1:1:cluster/a_b",
		"": "''", "a b": "'a b'", "it's": `'it'\''s'`, "a=b": "'a=b'",
	} {
		if got := ShellWord(text); got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{hostile, "'", "''", "$(id)", "a\nb"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+ShellWord(text)).CombinedOutput()
		if err != nil || string(out) != text {
			t.Errorf("a shell reads %q as %q, %v", text, out, err)
		}
	}
}

// TestHintsAreOneCommand: the command in a hint is a single command for any context name.
func TestHintsAreOneCommand(t *testing.T) {
	for _, e := range []interface{ Hint() string }{
		&ReachError{Context: hostile, Err: errors.New("refused")}, &PermissionError{Context: hostile},
	} {
		if hint := e.Hint(); !strings.Contains(hint, "--context "+ShellWord(hostile)+" ") {
			t.Errorf("%T: %s", e, hint)
		}
	}
}
