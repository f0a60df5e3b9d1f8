package records

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of texts, in bytes.
const (
	maxReport   = 72 << 10  // of a node: one with a thousand pods and hundreds of gateways has nearly as much
	maxGateway  = 16 << 10  // ten times what a gateway writes
	maxRecord   = 256 << 10 // twenty times a peering with as many exposed hosts as there can be
	maxRegistry = 768 << 10 // some 10,000 reservations
	// The API server accepts no more; the status of a gateway with 5,000 nodes is nearly as long.
	maxObject       = 1 << 20
	bytesPerValue   = 8   // at least, of a text and someBytes more; those that are written have 10 or more
	bytesPerElement = 24  // of such a list, at least; those that are written have 40 or more
	someBytes       = 256 // records that are written by hand are short
)

// MaxSize is how many bytes the text of a component's record has at most.
func MaxSize(component string) int {
	switch component {
	case ComponentNode:
		return maxReport
	case ComponentGateway:
		return maxGateway
	case ComponentIPAM:
		return maxRegistry
	case ComponentFabric, ComponentPeering:
		return maxRecord
	}
	return maxObject
}

// checkSize refuses a text that is too long for a component, before anything of it is decoded.
func checkSize(component, text string) error {
	most := MaxSize(component)
	return unless(len(text) <= most, "%d bytes: want at most %d", len(text), most)
}

// writtenByHelpers reports whether nodes and gateways write a component's records. These are JSON.
func writtenByHelpers(component string) bool {
	return component == ComponentNode || component == ComponentGateway || component == ComponentStatus
}

var (
	errCrowded = errors.New("too many values for its length")
	errWide    = errors.New("a zero byte: UTF-16 is not read")
	errNoJSON  = errors.New("no JSON, which reports are")
)

// plain returns a YAML document, or one of JSON alone, as JSON, in time and memory that are proportional to its length.
// Anchors, aliases, merge keys and tags are errors: by aliases, a text of 14 kB stands for one of 700 MB. So are texts
// that consist of hardly anything but separators, whose values need a hundred times the text's memory.
func plain(text string, alone bool) ([]byte, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, errWide
	}
	if crowded(text) {
		return nil, errCrowded
	}
	switch document := []byte(text); {
	case json.Valid(document):
		return document, nil
	case alone:
		return nil, errNoJSON
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

// Fields returns the fields of any YAML document that a cluster holds, as records are read. A text of more than 1 MiB
// is an error, too.
func Fields(text string) (fields map[string]any, err error) {
	document, err := documentOf("", text)
	if err == nil {
		err = json.Unmarshal(document, &fields)
	}
	return fields, err
}

// blanks are what follows a separator of YAML: spaces and ends of lines; the last two begin those of Unicode.
const blanks = " \t\r\n\xc2\xe2"

// crowded reports whether a text has too many values for its length. Each value but the first has a separator before
// it.
func crowded(text string) bool {
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

// checkLists refuses lists of gateways, tunnels and nodes with elements that are too short: in memory one has 170
// bytes, and while a list grows five times as much is allocated.
func checkLists(document []byte) error {
	type list []struct{} // elements without fields take no memory
	var lists struct {
		Nodes    list `json:"nodes"`
		Tunnels  list `json:"tunnels"`
		Gateways []struct {
			Tunnels list `json:"tunnels"`
		} `json:"gateways"`
	}
	_, _ = readJSON(document, &lists) // what is wrong with it is found when it is read
	elements := len(lists.Nodes) + len(lists.Tunnels) + len(lists.Gateways)
	for _, g := range lists.Gateways {
		elements += len(g.Tunnels)
	}
	if elements*bytesPerElement > len(document) {
		return errCrowded
	}
	return nil
}

// appendJSON appends a node of YAML as JSON.
func appendJSON(b []byte, n *yaml.Node) (_ []byte, err error) {
	if err := checkPlain(n); err != nil {
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

// checkPlain refuses what stands for something else, or has a type that its text does not show.
func checkPlain(n *yaml.Node) error {
	return unless(n.Kind != yaml.AliasNode && n.Anchor == "" && n.Style&yaml.TaggedStyle == 0 && n.Tag != "!!merge",
		"line %d: anchors, aliases, merge keys and tags are not allowed", n.Line)
}

func appendMapping(b []byte, n *yaml.Node) (_ []byte, err error) {
	b = append(b, '{')
	keys := make(map[string]bool, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if err := cmp.Or(checkPlain(key), unless(key.Kind == yaml.ScalarNode, "line %d: a key is no scalar", key.Line),
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
	var value any // a number, a truth value, or null
	if err := n.Decode(&value); err != nil {
		return nil, err
	}
	return appendValue(b, value)
}

func appendValue(b []byte, value any) ([]byte, error) {
	text, err := json.Marshal(value)
	return append(b, text...), err
}
