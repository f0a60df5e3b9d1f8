//go:build linux

package helper

import (
	"fmt"
	"os"
	"testing"
)

// TestMain makes the test program a helper if a test starts it as one: a helper works in the network namespace of its
// process.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := runChild(os.Stdin, os.Stdout, os.Stderr); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
