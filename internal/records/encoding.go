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

// Encode returns a record as YAML. One that was read from an older version is an error: its fields are those of now.
func Encode(d Document) (string, error) {
	if p, is := d.(Peering); is && p.Version != PeeringVersion {
		return "", fmt.Errorf("record of schema version %d: only version %d is written", p.Version, PeeringVersion)
	}
	if err := d.validate(); err != nil {
		return "", err
	}
	return Draft(d)
}

// Draft is Encode for a record that need not be complete yet.
func Draft(d Document) (string, error) {
	if s, is := d.(Status); is && len(s.Nodes) > readableNodes {
		b, err := json.Marshal(s)
		return string(b), err
	}
	b, err := yaml.Marshal(d)
	return string(b), err
}

// readableNodes is up to how many nodes a report is for people, too. Those of more are JSON, which is YAML for any reader, and is written
// and read in a tenth of the time: network status reads the reports of all gateways.
const readableNodes = 50

// Decode reads a record from YAML. Fields of later releases are ignored.
func Decode[T Document](text string) (T, error) {
	d, _, err := decode[T](text)
	return d, err
}

func decode[T Document](text string) (d T, unknown []string, err error) {
	if d, unknown, err = ReadYAML[T](text); err != nil {
		return d, nil, err
	}
	return d, unknown, briefly(d.validate())
}

// Replace returns what to write where a record is to become another: wanted. A live record with fields of a later release
// stays if all others are as wanted. If not, the error is an UnknownFieldsError, because wanted lacks these fields.
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

// ReadYAML reads a document of a schema version that this binary knows. The version comes first: a newer schema may give
// fields another meaning. Names of fields are case-sensitive. unknown are the paths of the fields that were ignored.
func ReadYAML[T any](text string) (d T, unknown []string, err error) {
	var probe struct {
		Version int `json:"version"`
	}
	var zero T
	document := []byte(text)
	if !json.Valid(document) {
		document, err = yaml.YAMLToJSONStrict(document)
	}
	if err == nil {
		_, err = readJSON(document, &probe)
	}
	if err != nil {
		return zero, nil, fmt.Errorf("damaged document: %w", briefly(err))
	}
	read, known := readerOf(&d, probe.Version)
	if read == nil {
		return zero, nil, fmt.Errorf("schema version %d, this binary knows %s", probe.Version, known)
	}
	if unknown, err = read(document); err != nil {
		return zero, nil, fmt.Errorf("damaged document: %w", briefly(err))
	}
	return d, unknown, nil
}

// reader reads a document and returns the paths of the fields that it ignores.
type reader func(document []byte) (unknown []string, err error)

// readerOf returns what reads a version of a document; nil: none does. known are the versions that are read.
func readerOf(d any, version int) (read reader, known string) {
	now := func(document []byte) ([]string, error) { return readJSON(document, d) }
	if p, is := d.(*Peering); is {
		return map[int]reader{1: p.readVersion1, PeeringVersion: now}[version], fmt.Sprintf("1 and %d", PeeringVersion)
	}
	return map[int]reader{SchemaVersion: now}[version], fmt.Sprint(SchemaVersion)
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
