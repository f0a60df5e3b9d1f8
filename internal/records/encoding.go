package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	strict "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Document is implemented by every record of this package, for Encode and Decode.
type Document interface {
	validate() error
	// identity returns the identity of the ConfigMap for the record. Peering is set if the record contains its name.
	identity() Identity
}

// Encode returns a record as text: YAML for records that liqoctl writes, JSON for records that helpers write. A record
// that Decode would reject is an error.
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

// Draft encodes a record without validation; it may be incomplete.
func Draft(d Document) (string, error) {
	if writtenByHelpers(d.identity().Component) {
		b, err := json.Marshal(d)
		return string(b), err
	}
	b, err := yaml.Marshal(d)
	return string(b), err
}

// Decode decodes a record. It ignores fields of later releases. It rejects a text that is too long for its kind of
// record before decoding any of it, because decoding takes time and memory in proportion to the length.
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

// Replace returns the text to write when a live record is to become the wanted one. If the known fields of the live
// record match wanted, it keeps the live text, and with it the fields of a later release. If they differ and the live
// record has such fields, it returns an UnknownFieldsError, because wanted lacks these fields.
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

// UnknownFieldsError reports that a document was not changed because it has fields of a later release.
type UnknownFieldsError struct {
	Fields []string // their paths
}

func (e *UnknownFieldsError) Error() string {
	return "not changed: this version of liqoctl would delete fields that it does not know: " + strings.Join(e.Fields, ", ")
}

// Hint describes how to change the document.
func (e *UnknownFieldsError) Hint() string {
	return "use the version of liqoctl that wrote the document; liqoctl version shows those of the helpers"
}

// ReadText decodes a component's document if this binary knows its schema version. The version is checked first: a
// newer schema may give fields another meaning. Field names are case-sensitive. unknown lists the paths of the fields
// that were ignored.
func ReadText[T any](component, text string) (d T, unknown []string, err error) {
	var zero T
	var o outline
	document, err := documentOf(component, text)
	if err == nil {
		// It needs no errors about unknown fields, which take most of the time of strict decoding.
		err = strict.UnmarshalCaseSensitivePreserveInts(document, &o)
		if malformed, _ := strict.SyntaxErrorOffset(err); malformed {
			err = errNoJSON
		}
	}
	if err != nil && o.Version == 0 { // an error in a list is that of the full decoding, which follows
		return zero, nil, fmt.Errorf("damaged document: %w", briefly(err))
	}
	if o.Version != SchemaVersion {
		return zero, nil, fmt.Errorf("schema version %d, this binary knows %d", o.Version, SchemaVersion)
	}
	if err = o.checkLists(len(document)); err == nil {
		unknown, err = readJSON(document, &d)
	}
	if err != nil {
		return zero, nil, fmt.Errorf("damaged document: %w", briefly(err))
	}
	return d, unknown, nil
}

// documentOf converts the text of a component's record to JSON.
func documentOf(component, text string) ([]byte, error) {
	if err := checkSize(component, text); err != nil {
		return nil, err
	}
	return toJSON(text, writtenByHelpers(component))
}

// readJSON decodes a document. A duplicate key is an error.
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
