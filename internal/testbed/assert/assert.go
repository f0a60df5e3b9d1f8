// Package assert has checks after which a test goes on.
package assert

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// NoError fails the test with err, unless it is nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// ErrorContains wants an error whose text contains want. what names the error.
func ErrorContains(t testing.TB, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", what, err, want)
	}
}

// Equal compares two values. what names them.
func Equal(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
