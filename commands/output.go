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
		b, err := yaml.Marshal(answer)
		if err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		_, err = w.Write(b)
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return nil
}

// table writes rows in aligned columns; the first is the heading. A column's last cell in a row is not padded.
func table(w io.Writer, rows [][]string) error {
	tabs := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(tabs, strings.Join(row, "\t"))
	}
	return tabs.Flush()
}
