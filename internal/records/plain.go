package records

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits for texts, in bytes.
const (
	maxReport   = 72 << 10  // report of a node; with a thousand pods and hundreds of gateways it is almost as long
	maxGateway  = 16 << 10  // ten times the length that a gateway writes
	maxRecord   = 256 << 10 // twenty times a peering with MaxExposed hosts
	maxRegistry = 768 << 10 // some 10,000 reservations
	// The API server's limit. The status of a gateway with 5,000 nodes is almost as long.
	maxObject       = 1 << 20
	bytesPerValue   = 8   // minimum, after the first someBytes; real texts have 10 or more
	bytesPerElement = 24  // minimum per element of the lists in checkLists; real ones have 40 or more
	someBytes       = 256 // allowance for short records that are written by hand
)

// MaxSize returns the maximum length of a component's record, in bytes.
func MaxSize(component string) int {
	switch component {
	case ComponentNode:
		return maxReport
	case ComponentGateway:
		return maxGateway
	case ComponentIPAM:
		return maxRegistry
	case ComponentFabric, ComponentPeering, ComponentOffer:
		return maxRecord
	}
	return maxObject
}

// checkSize rejects a text that is too long for its component, before any of it is decoded.
func checkSize(component, text string) error {
	most := MaxSize(component)
	return unless(len(text) <= most, "%d bytes: want at most %d", len(text), most)
}

// writtenByHelpers reports whether nodes and gateways write a component's records. These records are JSON.
func writtenByHelpers(component string) bool {
	return component == ComponentNode || component == ComponentGateway || component == ComponentStatus
}

var (
	errTooManyValues = errors.New("too many values for its length")
	errWide          = errors.New("a zero byte: UTF-16 is not read")
	errNoJSON        = errors.New("no JSON, which reports are")
)

// toJSON converts a YAML document to JSON, or returns the text as it is if jsonOnly is set, in time and memory
// proportional to its length. Anchors, aliases, merge keys and tags are errors: with aliases, a text of 14 kB can
// represent one of 700 MB. Texts that consist almost entirely of separators are errors as well: their values need a
// hundred times the text's memory.
func toJSON(text string, jsonOnly bool) ([]byte, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, errWide
	}
	if tooManyValues(text) {
		return nil, errTooManyValues
	}
	if document := []byte(text); jsonOnly || json.Valid(document) {
		return document, nil // JSON of reports is validated when it is decoded
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return nil, err
	}
	if len(root.Content) == 0 {
		return []byte("null"), nil
	}
	return appendJSON(nil, root.Content[0])
}

// Fields returns the fields of any YAML document in a cluster, with the limits that apply to records. A text of more
// than 1 MiB is an error.
func Fields(text string) (fields map[string]any, err error) {
	document, err := documentOf("", text)
	if err == nil {
		err = json.Unmarshal(document, &fields)
	}
	return fields, err
}

// blanks are the bytes that may follow a separator in YAML: spaces and line ends. The last two bytes begin Unicode's.
const blanks = " \t\r\n\xc2\xe2"

// tooManyValues reports whether a text has too many values for its length. It counts separators: each value but the
// first has one before it.
func tooManyValues(text string) bool {
	values := 0
	for i := range len(text) {
		switch text[i] {
		case ',', '[', '{':
			values++
		case ':', '-', '?':
			if i+1 == len(text) || strings.IndexByte(blanks, text[i+1]) >= 0 {
				values++
			}
		}
	}
	return values*bytesPerValue > len(text)+someBytes
}

// outline is what is read of a document before all of it is decoded.
type outline struct {
	Version  int      `json:"version"`
	Nodes    elements `json:"nodes"`
	Tunnels  elements `json:"tunnels"`
	Gateways []struct {
		Tunnels elements `json:"tunnels"`
	} `json:"gateways"`
}

// elements counts those of a list: without fields they take no memory.
type elements []struct{}

// checkLists rejects lists of gateways, tunnels and nodes whose elements are too short for the document's length. In
// memory an element has 170 bytes, and a growing list allocates five times as much.
func (o outline) checkLists(length int) error {
	all := len(o.Nodes) + len(o.Tunnels) + len(o.Gateways)
	for _, g := range o.Gateways {
		all += len(g.Tunnels)
	}
	if all*bytesPerElement > length {
		return errTooManyValues
	}
	return nil
}

// appendJSON appends a YAML node as JSON.
func appendJSON(b []byte, n *yaml.Node) (_ []byte, err error) {
	if err := checkNode(n); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.MappingNode:
		return appendMapping(b, n)
	case yaml.ScalarNode:
		return appendScalar(b, n)
	}
	b = append(b, '[')
	for i, element := range n.Content {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendJSON(b, element); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// checkNode rejects aliases, anchors, merge keys, and types that the text does not show.
func checkNode(n *yaml.Node) error {
	return unless(n.Kind != yaml.AliasNode && n.Anchor == "" && n.Style&yaml.TaggedStyle == 0 && n.Tag != "!!merge",
		"line %d: anchors, aliases, merge keys and tags are not allowed", n.Line)
}

func appendMapping(b []byte, n *yaml.Node) (_ []byte, err error) {
	b = append(b, '{')
	keys := make(map[string]bool, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if err := cmp.Or(checkNode(key), unless(key.Kind == yaml.ScalarNode, "line %d: a key is no scalar", key.Line),
			unless(!keys[key.Value], "line %d: duplicate field %q", key.Line, key.Value)); err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		keys[key.Value] = true
		if b, err = appendValue(b, key.Value); err == nil {
			b, err = appendJSON(append(b, ':'), n.Content[i+1])
		}
		if err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendScalar(b []byte, n *yaml.Node) ([]byte, error) {
	if tag := n.ShortTag(); tag == "!!str" || tag == "!!timestamp" {
		return appendValue(b, n.Value)
	}
	var value any // a number, a boolean, or null
	if err := n.Decode(&value); err != nil {
		return nil, err
	}
	return appendValue(b, value)
}

func appendValue(b []byte, value any) ([]byte, error) {
	text, err := json.Marshal(value)
	return append(b, text...), err
}
