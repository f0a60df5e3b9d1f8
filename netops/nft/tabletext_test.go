package nft

import (
	"fmt"
	"strings"
)

// String returns the table in the input language of nft(8), as "nft -y list table" prints it, except for white space.
func (t Table) String() string {
	if t.Name == "" {
		return ""
	}
	flags := ""
	if t.Dormant {
		flags = "\tflags dormant\n"
	}
	var blocks []string
	for _, s := range t.Sets {
		blocks = append(blocks, s.text())
	}
	for _, c := range t.Chains {
		blocks = append(blocks, c.text())
	}
	return fmt.Sprintf("table %s {\n%s%s}\n", t.id(), flags, strings.Join(blocks, "\n"))
}

func (s Set) text() string {
	var lines []string
	if s.Foreign != "" {
		lines = append(lines, "# "+s.Foreign)
	}
	lines = append(append(lines, "type "+s.keyText()), s.options()...)
	if len(s.Elements) > 0 {
		lines = append(lines, "elements = {\n\t\t\t"+prefixTexts(s.Elements, ",\n\t\t\t")+"\n\t\t}")
	}
	return block("set "+s.Name, lines)
}

func (c Chain) text() string {
	var lines []string
	if c.Hook != nil {
		lines = append(lines, c.Hook.String())
	}
	for _, r := range c.Rules {
		lines = append(lines, r.String())
	}
	return block("chain "+c.Name, lines)
}

// block returns a part of a table's text.
func block(title string, lines []string) string {
	text := "\t" + title + " {\n"
	for _, line := range lines {
		text += "\t\t" + line + "\n"
	}
	return text + "\t}\n"
}
