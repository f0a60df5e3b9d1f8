// Package bubble has subtests with the clock of package synctest, in which waits take no time.
package bubble

import (
	"testing"
	"testing/synctest"
)

// Run runs a subtest in a bubble of its own.
func Run(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}
