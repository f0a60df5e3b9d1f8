package commands

import (
	"testing"

	files "liqonet.io/liqonet/internal/golden"
)

// golden compares a text with the file of that name in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	files.Check(t, name+".golden", got)
}
