package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	strict "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Document is what Encode and Decode take: every record of this package.
type Document interface {
	validate() error
	// identity is what the ConfigMap must be that holds the record, with the peering's name where the record has it.
	identity() Identity
}

// Encode returns a record as text: YAML where liqoctl writes it, JSON where helpers do. One that no reader would accept
// is an error.
func Encode(d Document) (string, error) {
	if err := d.validate(); err != nil {
		return "", err
	}
	text, err := Draft(d)
	if err == nil {
		err = checkSize(d.identity().Component, text)
	}
	return text, err
}

// Draft is Encode for a record that need not be complete yet.
func Draft(d Document) (string, error) {
	if writtenByHelpers(d.identity().Component) {
		b, err := json.Marshal(d)
		return string(b), err
	}
	b, err := yaml.Marshal(d)
	return string(b), err
}

// Decode reads a record. Fields of later releases are ignored. A text that is too long for such a record is an error
// before anything of it is decoded; decoding takes time and memory in proportion to the length.
func Decode[T Document](text string) (T, error) {
	d, _, err := decode[T](text)
	return d, err
}

func decode[T Document](text string) (d T, unknown []string, err error) {
	if d, unknown, err = ReadText[T](d.identity().Component, text); err != nil {
		return d, nil, err
	}
	return d, unknown, briefly(d.validate())
}

// Replace returns what to write where a record is to become another: wanted. A live record with fields of a later
// release stays if all others are as wanted. If not, the error is an UnknownFieldsError, because wanted lacks these
// fields.
func Replace[T Document](live, wanted string) (string, error) {
	record, unknown, err := decode[T](live)
	if err != nil || len(unknown) == 0 {
		return wanted, err
	}
	if known, err := Draft(record); err != nil || known == wanted {
		return live, err
	}
	return "", &UnknownFieldsError{Fields: unknown}
}

// UnknownFieldsError says why a document is not changed: it has fields of a later release.
type UnknownFieldsError struct {
	Fields []string // their paths
}

func (e *UnknownFieldsError) Error() string {
	return "not changed: this version of liqoctl would delete fields that it does not know: " + strings.Join(e.Fields, ", ")
}

// Hint says how to change the document.
func (e *UnknownFieldsError) Hint() string {
	return "use the version of liqoctl that wrote the document; liqoctl version shows those of the helpers"
}

// ReadText reads a component's document, of a schema version that this binary knows. The version comes first: a newer
// schema may give fields another meaning. Names of fields are case-sensitive. unknown are the paths of the fields that
// were ignored.
func ReadText[T any](component, text string) (d T, unknown []string, err error) {
	var probe struct {
		Version int `json:"version"`
	}
	var zero T
	document, err := documentOf(component, text)
	if err == nil {
		_, err = readJSON(document, &probe)
	}
	if err != nil {
		return zero, nil, fmt.Errorf("damaged document: %w", briefly(err))
	}
	if probe.Version != SchemaVersion {
		return zero, nil, fmt.Errorf("schema version %d, this binary knows %d", probe.Version, SchemaVersion)
	}
	if err = checkLists(document); err == nil {
		unknown, err = readJSON(document, &d)
	}
	if err != nil {
		return zero, nil, fmt.Errorf("damaged document: %w", briefly(err))
	}
	return d, unknown, nil
}

// documentOf returns the text of a component's record as JSON.
func documentOf(component, text string) ([]byte, error) {
	if err := checkSize(component, text); err != nil {
		return nil, err
	}
	return plain(text, writtenByHelpers(component))
}

// readJSON reads a document. A key twice is an error.
func readJSON(document []byte, into any) (unknown []string, err error) {
	ignored, err := strict.UnmarshalStrict(document, into)
	for _, e := range ignored {
		field, ok := errors.AsType[strict.FieldError](e)
		switch {
		case ok && strings.HasPrefix(e.Error(), "unknown"):
			unknown = append(unknown, field.FieldPath())
		case err == nil:
			err = e
		}
	}
	return unknown, err
}
