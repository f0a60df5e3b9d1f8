package records

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode"
)

// maxText limits the texts in reports, in bytes. Users read them on a terminal. A stolen gateway token can write up to
// 1 MiB.
const maxText = 2000

// maxFailures is the number of a gateway's failures that are read. Gateways write at most one.
const maxFailures = 4

// Brief returns a text of a report in the form that users see: one line of printable characters, cut after 2,000 bytes.
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

// briefly shortens the text of an error that quotes a long value.
func briefly(err error) error {
	if err == nil || len(err.Error()) <= maxText {
		return err
	}
	return errors.New(Brief(err.Error()))
}

// Failures are the errors of a gateway's last pass, as it reports them.
type Failures []string

// UnmarshalJSON limits number and length: a stolen gateway token can write texts of any length.
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
