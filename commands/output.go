package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// format is how an answer is written.
type format string

const (
	formatText format = "text"
	formatWide format = "wide"
	formatJSON format = "json"
	formatYAML format = "yaml"
)

// encode writes an answer in one of the formats for programs.
func (f format) encode(w io.Writer, answer any) error {
	if f == formatYAML {
		text, err := json.Marshal(answer)
		if err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		// YAML refuses some characters, unless they are escaped.
		b, err := yaml.JSONToYAML([]byte(visibleJSON(string(text))))
		if err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		_, err = io.WriteString(w, visibleJSON(string(b)))
		return err
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	_, err := io.WriteString(w, visibleJSON(b.String()))
	return err
}

// table writes rows in aligned columns; the first is the heading. A column's last cell in a row is not padded.
func table(w io.Writer, rows [][]string) error {
	tabs := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = visibleCell(cell)
		}
		fmt.Fprintln(tabs, strings.Join(cells, "\t"))
	}
	return tabs.Flush()
}
