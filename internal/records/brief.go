package records

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode"
)

// maxText bounds texts of reports, in bytes. Users read them on a terminal, and a stolen token of a gateway can write 1
// MiB.
const maxText = 2000

// maxFailures is how many failures of a gateway are read. Gateways write one.
const maxFailures = 4

// Brief is a text of a report as people are shown it: one line of printable characters, cut after 2,000 bytes.
func Brief(text string) string {
	cut := len(text) > maxText
	if cut {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if cut {
		text += " …"
	}
	return text
}

// briefly cuts the text of an error that quotes a long value.
func briefly(err error) error {
	if err == nil || len(err.Error()) <= maxText {
		return err
	}
	return errors.New(Brief(err.Error()))
}

// Failures are what a gateway reports of its last pass.
type Failures []string

// UnmarshalJSON bounds them: a stolen token of a gateway can write texts of any length.
func (f *Failures) UnmarshalJSON(text []byte) error {
	var all []string
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*f = nil
	for _, one := range all[:min(len(all), maxFailures)] {
		*f = append(*f, Brief(one))
	}
	return nil
}
