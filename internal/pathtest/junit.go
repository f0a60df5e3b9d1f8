package pathtest

import (
	"encoding/xml"
	"fmt"
)

// The elements of a JUnit report that continuous integration systems read.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"` // from where to where
		Name    string        `xml:"name,attr"`      // of the check
		Failure *junitMessage `xml:"failure,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
	}
)

// JUnit writes the result as a JUnit report, with a suite for each direction.
func (r Result) JUnit() ([]byte, error) {
	var all junitSuites
	for _, c := range r.Checks {
		name := c.From.Cluster + " to " + c.To.Cluster
		if len(all.Suites) == 0 || all.Suites[len(all.Suites)-1].Name != name {
			all.Suites = append(all.Suites, junitSuite{Name: name})
		}
		suite := &all.Suites[len(all.Suites)-1]
		one := junitCase{Class: fmt.Sprintf("%s to %s", c.From, c.To), Name: string(c.Name)}
		switch suite.Tests++; c.State {
		case Failed:
			suite.Failures++
			one.Failure = &junitMessage{fmt.Sprintf("seen: %s; expected: %s", c.Seen, c.Expected)}
		case Skipped:
			suite.Skipped++
			one.Skipped = &junitMessage{c.Seen}
		}
		suite.Cases = append(suite.Cases, one)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode JUnit report: %w", err)
	}
	return append([]byte(xml.Header), append(text, '\n')...), nil
}
