package pathtest

import (
	"fmt"

	"liqonet.io/liqonet/internal/junit"
)

// JUnit writes the result as a JUnit report, with a suite for each direction.
func (r Result) JUnit() ([]byte, error) {
	var suites []junit.Suite
	for _, c := range r.Checks {
		name := c.From.Cluster + " to " + c.To.Cluster
		if len(suites) == 0 || suites[len(suites)-1].Name != name {
			suites = append(suites, junit.Suite{Name: name})
		}
		one := junit.Case{Class: fmt.Sprintf("%s to %s", c.From, c.To), Name: string(c.Name)}
		switch c.State {
		case Failed:
			one.Failed = fmt.Sprintf("seen: %s; expected: %s", c.Seen, c.Expected)
		case Skipped:
			one.Skipped = c.Seen
		}
		suite := &suites[len(suites)-1]
		suite.Cases = append(suite.Cases, one)
	}
	return junit.Encode(suites)
}
