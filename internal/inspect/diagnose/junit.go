package diagnose

import (
	"cmp"
	"fmt"

	"liqonet.io/liqonet/internal/junit"
)

// JUnit writes the result as a JUnit report, with a suite for each layer. Warnings pass.
func (r Result) JUnit() ([]byte, error) {
	var suites []junit.Suite
	for _, layer := range Layers() {
		suite := junit.Suite{Name: string(layer)}
		for _, f := range r.Checks {
			if f.Layer != layer {
				continue
			}
			one := junit.Case{Class: f.Subject(), Name: f.ID}
			switch f.State {
			case Failed:
				one.Failed = cmp.Or(f.Observed, f.Cause)
			case Following:
				one.Skipped = fmt.Sprintf("follows %s: %s", f.Follows, f.Observed)
			case Skipped:
				one.Skipped = f.Observed
			}
			suite.Cases = append(suite.Cases, one)
		}
		suites = append(suites, suite)
	}
	return junit.Encode(suites)
}
