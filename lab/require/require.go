// Package require ends a test where it cannot go on.
package require

import "testing"

// NoError ends the test with err, unless it is nil. A test whose subject is the error compares it instead.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
