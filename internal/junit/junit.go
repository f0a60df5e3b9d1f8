// Package junit writes results as JUnit reports, as read by continuous integration systems.
package junit

import (
	"encoding/xml"
	"fmt"
)

// Suite is a group of cases.
type Suite struct {
	Name  string
	Cases []Case
}

// Case is a check. It has passed if it neither failed nor was skipped.
type Case struct {
	Class, Name string
	Failed      string // reason; "": it did not fail
	Skipped     string
}

// The elements of a report.
type (
	suiteElement struct {
		Name     string        `xml:"name,attr"`
		Tests    int           `xml:"tests,attr"`
		Failures int           `xml:"failures,attr"`
		Skipped  int           `xml:"skipped,attr"`
		Cases    []caseElement `xml:"testcase"`
	}
	caseElement struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *message `xml:"failure,omitempty"`
		Skipped *message `xml:"skipped,omitempty"`
	}
	message struct {
		Message string `xml:"message,attr"`
	}
)

// Encode returns the report.
func Encode(suites []Suite) ([]byte, error) {
	document := struct {
		XMLName xml.Name       `xml:"testsuites"`
		Suites  []suiteElement `xml:"testsuite"`
	}{}
	for _, s := range suites {
		suite := suiteElement{Name: s.Name, Tests: len(s.Cases)}
		for _, c := range s.Cases {
			one := caseElement{Class: c.Class, Name: c.Name}
			if c.Failed != "" {
				suite.Failures++
				one.Failure = &message{c.Failed}
			}
			if c.Skipped != "" {
				suite.Skipped++
				one.Skipped = &message{c.Skipped}
			}
			suite.Cases = append(suite.Cases, one)
		}
		document.Suites = append(document.Suites, suite)
	}
	text, err := xml.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode JUnit report: %w", err)
	}
	return append([]byte(xml.Header), append(text, '\n')...), nil
}
