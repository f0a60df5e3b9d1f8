package commands

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

// format is how an answer is written; with jsonpath, the template follows an equals sign.
type format string

const (
	formatText     format = "text"
	formatWide     format = "wide"
	formatJSON     format = "json"
	formatYAML     format = "yaml"
	formatJSONPath format = "jsonpath"

	// Of network status alone.
	formatTree    format = "tree"
	formatMermaid format = "mermaid"
)

var errFormat = errors.New("must be text, wide, json, yaml or jsonpath=TEMPLATE")

// outputFlag adds the flag that chooses how a command prints its answer, with more formats that it has. The default is
// *to.
func outputFlag(cmd *cobra.Command, to *format, more ...string) {
	usage := strings.Join(append([]string{"text, wide, json, yaml"}, more...), ", ") + " or jsonpath=TEMPLATE"
	addFlag(cmd.Flags(), to, "output,o", "FORMAT", usage, func(text string) (format, error) {
		if word := strings.ToLower(text); slices.Contains(more, word) {
			return format(word), nil
		}
		return readFormat(text)
	})
	complete(cmd, "output", cobra.FixedCompletions(slices.Concat([]string{"text", "wide", "json", "yaml", "jsonpath="}, more),
		cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

func readFormat(text string) (format, error) {
	word, source, templated := strings.Cut(text, "=")
	switch f := format(strings.ToLower(word)); f {
	case formatText, formatWide, formatJSON, formatYAML:
		if !templated {
			return f, nil
		}
	case formatJSONPath:
		_, err := parseTemplate(source)
		return f + "=" + format(source), err
	}
	return "", errFormat
}

// structured reports whether the answer is for a program.
func (f format) structured() bool {
	return !slices.Contains([]format{formatText, formatWide, formatTree, formatMermaid}, f)
}

// parseTemplate returns what writes a document as a template says.
func parseTemplate(source string) (func(io.Writer, any) error, error) {
	if source != "" && !strings.Contains(source, "{") { // as kubectl's columns: .peerings[0].state
		source = "{" + source + "}"
	}
	path := jsonpath.New("output").AllowMissingKeys(true)
	return path.Execute, path.Parse(source)
}

// encode writes an answer in one of the formats for programs. No character in it controls a terminal.
func (f format) encode(w io.Writer, answer any) error {
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
func (f format) convert(document string) (string, error) {
	kind, source, _ := strings.Cut(string(f), "=")
	switch format(kind) {
	case formatJSON:
		return document, nil
	case formatYAML:
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
	return visible(b.String()), err
}

// manifests writes objects as kubectl reads them: YAML documents, else the object, or a List of several.
func manifests[T any](w io.Writer, f format, objects []T) error {
	if f.structured() && f != formatYAML {
		if len(objects) == 1 {
			return f.encode(w, objects[0])
		}
		return f.encode(w, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}
	for i, object := range objects {
		if i > 0 {
			if _, err := io.WriteString(w, "---\n"); err != nil {
				return err
			}
		}
		if err := formatYAML.encode(w, object); err != nil {
			return err
		}
	}
	return nil
}

// table writes rows in aligned columns; the first is the heading. A column's last cell in a row is not padded. paint
// adds colours: as many characters to every cell of a column.
func table(w io.Writer, rows [][]string, paint ...func(column int, cell string) string) error {
	tabs := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = visibleCell(cell)
			for _, colour := range paint {
				cells[i] = colour(i, cells[i])
			}
		}
		fmt.Fprintln(tabs, strings.Join(cells, "\t"))
	}
	return tabs.Flush()
}

func list(ranges []netip.Prefix) string { return cmp.Or(joined(ranges, netip.Prefix.String), "none") }

// joined lists values as text.
func joined[T any](all []T, text func(T) string) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = text(one)
	}
	return strings.Join(texts, ", ")
}
