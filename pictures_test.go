package liqonet_test

import (
	"cmp"
	"fmt"
	"html"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestPictures: the pictures of docs/images show the figures of the pages with measurements, and so does the page for
// users.
func TestPictures(t *testing.T) {
	measured := table(t, "docs/contributing/measurements.md", "| | tunnel | own tunnel")
	users, err := os.ReadFile("docs/performance.md")
	require.NoError(t, err)
	paths := [][3]string{ // column, class and label of a bar
		{"tunnel", "other", "WireGuard alone, between gateways"}, {"baseline", "other", "Simplest overlay, between pods"},
		{"Liqo model", "other", "Model of Liqo's path, between pods"}, {"liqonet", "ours", "liqonet, between pods"},
	}
	var panels []panel
	for _, row := range []struct{ name, title, unit string }{
		{"TCP, 1 stream, Mbit/s", "TCP, one stream: more is better", " Mbit/s"},
		{"UDP, 64 bytes, packets/s", "UDP packets of 64 bytes: more is better", "/s"},
		{"round trip, median µs", "Round trip: less is better", " µs"},
	} {
		cells := measured[slices.IndexFunc(measured, func(r map[string]string) bool { return r[""] == row.name })]
		p := panel{title: row.title}
		for _, path := range paths {
			text := cells[path[0]] + row.unit
			if !strings.Contains(string(users), "| "+text+" |") {
				t.Errorf("docs/performance.md has no cell %q", text)
			}
			p.bars = append(p.bars, bar{path[1], path[2], number(t, cells[path[0]]), 0, text})
		}
		panels = append(panels, p)
	}
	golden.File(t, "docs/images/performance.svg", drawing("Two clusters on one machine, userspace WireGuard", panels...))

	faults := panel{title: "Median, and the worst of all runs (pale)"}
	for _, row := range table(t, "docs/contributing/faults.md", "## 2 gateways on each side") {
		if fault := row["fault"]; !strings.HasPrefix(fault, "none") {
			median, worst, _ := strings.Cut(row["seconds without"], " / ")
			b := bar{"ours", strings.ToUpper(fault[:1]) + fault[1:], number(t, median), number(t, worst), "0"}
			if b.worst > 0 {
				b.text = median + ", worst " + worst + " s"
			}
			faults.bars = append(faults.bars, b)
		}
	}
	slices.SortStableFunc(faults.bars, func(a, b bar) int { return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(b.worst, a.worst)) })
	golden.File(t, "docs/images/faults.svg", drawing("Seconds without packets, two gateways in each cluster", faults))
}

// table returns the rows of the first table of a page from a text on, by the names of columns.
func table(t *testing.T, page, from string) (rows []map[string]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	at := max(strings.Index(string(text), from), 0)
	at += max(strings.Index(string(text[at:]), "| "), 0)
	body, _, _ := strings.Cut(string(text[at:]), "\n\n")
	lines := strings.Split(strings.TrimSpace(body), "\n")
	columns := strings.Split(strings.Trim(lines[0], "|"), "|")
	for _, line := range lines[2:] {
		row := make(map[string]string)
		for i, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			row[strings.TrimSpace(columns[i])] = strings.TrimSpace(cell)
		}
		rows = append(rows, row)
	}
	return rows
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	require.NoError(t, err)
	return n
}

// bar is a row of a picture, of a class of the style. The part up to worst is pale.
type bar struct {
	class, label string
	value, worst float64
	text         string
}

// panel is a group of bars with one scale.
type panel struct {
	title string
	bars  []bar
}

const pictureStyle = `rect.page{fill:#fff;stroke:#d0d7de}text{fill:#1f2328;font:12px -apple-system,"Segoe UI",Helvetica,Arial,sans-serif}` +
	`.title{font-size:15px;font-weight:600}.note{fill:#59636e;font-weight:600}.other{fill:#a8b1bb}.ours{fill:#0969da}.worst{fill:#b6d7ff}` +
	`@media(prefers-color-scheme:dark){rect.page{fill:#0d1117;stroke:#3d444d}text{fill:#f0f6fc}.note{fill:#9198a1}.other{fill:#656c76}.ours{fill:#4493f8}.worst{fill:#1f4a7f}}`

// drawing returns the SVG of panels with horizontal bars. It has a background of its own, for light and dark pages.
func drawing(title string, panels ...panel) string {
	// Pixels: of the picture, a row, a letter at most, and the text after a bar.
	const width, line, letter, figures = 830, 24, 7, 150
	left, y := 0, 30
	for _, p := range panels {
		for _, one := range p.bars {
			left = max(left, 30+letter*len(one.label))
		}
	}
	var b strings.Builder
	text := func(attributes string, x, y int, text string) {
		fmt.Fprintf(&b, "<text %s x=\"%d\" y=\"%d\">%s</text>\n", attributes, x, y, html.EscapeString(text))
	}
	text(`class="title"`, 20, y, title)
	for _, p := range panels {
		y += line + 6
		text(`class="note"`, 20, y, p.title)
		var top float64
		for _, one := range p.bars {
			top = max(top, one.value, one.worst)
		}
		fmt.Fprintf(&b, "<rect class=\"other\" x=\"%d\" y=\"%d\" width=\"1\" height=\"%d\"/>\n", left-1, y+8, line*len(p.bars))
		for _, one := range p.bars {
			y += line
			text(`text-anchor="end"`, left-10, y, one.label)
			end := left
			for _, part := range []bar{{class: "worst", value: one.worst}, one} {
				length := int(float64(width-left-figures) * part.value / top)
				fmt.Fprintf(&b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"14\"/>\n", part.class, left, y-11, length)
				end = max(end, left+length)
			}
			text("", end+8, y, one.text)
		}
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n<style>%s</style>\n"+
		"<rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n%s</svg>\n", width, y+22, pictureStyle, width-1, y+21, b.String())
}
