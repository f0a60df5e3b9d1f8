// Package ui prints results and progress, as text for people and in formats for programs, and reads values of flags. It
// does not know what commands do.
package ui

import (
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// Format is how an answer is written; with jsonpath, the template follows an equals sign.
type Format string

// The formats of all commands.
const (
	FormatText     Format = "text"
	FormatWide     Format = "wide"
	FormatJSON     Format = "json"
	FormatYAML     Format = "yaml"
	formatJSONPath Format = "jsonpath"
)

// Formats of network status alone.
const (
	FormatTree    Format = "tree"
	FormatMermaid Format = "mermaid"
)

// OutputFlag adds the flag that selects the format of a command's answer. more are the formats that this command has
// besides those of all commands. The default is *to.
func OutputFlag(cmd *cobra.Command, to *Format, more ...Format) {
	words := slices.Concat([]Format{FormatText}, more, []Format{FormatJSON, FormatYAML})
	usage := Joined(words, func(f Format) string { return string(f) }) + " or jsonpath=TEMPLATE"
	AddFlag(cmd.Flags(), to, "output,o", "FORMAT", usage, func(text string) (Format, error) {
		if word := Format(strings.ToLower(text)); slices.Contains(words, word) {
			return word, nil
		}
		kind, source, templated := strings.Cut(text, "=")
		if !templated || Format(strings.ToLower(kind)) != formatJSONPath {
			return "", errors.New("must be " + usage)
		}
		_, err := parseTemplate(source)
		return formatJSONPath + "=" + Format(source), err
	})
	completions := []string{string(formatJSONPath) + "="}
	for _, word := range words {
		completions = append(completions, string(word))
	}
	Complete(cmd, "output", cobra.FixedCompletions(completions, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// Structured reports whether the answer is for a program.
func (f Format) Structured() bool {
	return !slices.Contains([]Format{FormatText, FormatWide, FormatTree, FormatMermaid}, f)
}

// parseTemplate returns a function that writes a document with a template.
func parseTemplate(source string) (func(io.Writer, any) error, error) {
	if source != "" && !strings.Contains(source, "{") { // like kubectl's columns: .peerings[0].state
		source = "{" + source + "}"
	}
	path := jsonpath.New("output").AllowMissingKeys(true)
	return path.Execute, path.Parse(source)
}

// Encode writes an answer in one of the formats for programs. No character in it controls a terminal.
func (f Format) Encode(w io.Writer, answer any) error {
	var b strings.Builder
	encoder := stdjson.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	text, err := f.convert(visibleJSON(b.String()))
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	_, err = io.WriteString(w, text)
	return err
}

// convert turns JSON into the format.
func (f Format) convert(document string) (string, error) {
	kind, source, _ := strings.Cut(string(f), "=")
	switch Format(kind) {
	case FormatJSON:
		return document, nil
	case FormatYAML:
		b, err := yaml.JSONToYAML([]byte(document))
		return visibleJSON(string(b)), err
	}
	write, err := parseTemplate(source)
	if err != nil {
		return "", err
	}
	var fields any
	if err := json.Unmarshal([]byte(document), &fields); err != nil {
		return "", err
	}
	var b strings.Builder
	err = write(&b, fields)
	return Visible(b.String()), err
}

// Manifests writes objects as kubectl reads them: YAML documents, else the object, or a List of several.
func Manifests[T any](w io.Writer, f Format, objects []T) error {
	if f.Structured() && f != FormatYAML {
		if len(objects) == 1 {
			return f.Encode(w, objects[0])
		}
		return f.Encode(w, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}
	for i, object := range objects {
		if i > 0 {
			if _, err := io.WriteString(w, "---\n"); err != nil {
				return err
			}
		}
		if err := FormatYAML.Encode(w, object); err != nil {
			return err
		}
	}
	return nil
}

// Table writes rows in aligned columns; the first is the heading. A column's last cell in a row is not padded. paint
// adds colours: as many characters to every cell of a column.
func Table(w io.Writer, rows [][]string, paint ...func(column int, cell string) string) error {
	tabs := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = VisibleCell(cell)
			for _, colour := range paint {
				cells[i] = colour(i, cells[i])
			}
		}
		fmt.Fprintln(tabs, strings.Join(cells, "\t"))
	}
	return tabs.Flush()
}

// List returns the CIDRs with commas between them, or "none".
func List(ranges []netip.Prefix) string { return cmp.Or(Joined(ranges, netip.Prefix.String), "none") }

// Joined lists values as text.
func Joined[T any](all []T, text func(T) string) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = text(one)
	}
	return strings.Join(texts, ", ")
}
