// Package svg writes pictures that load nothing and run nothing: a few shapes, and a page around them. Every text is input.
package svg

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode"
)

// style has a class for each kind of shape, and for each state of a peering. Pictures say the state in words as well.
const style = `text{font:12px monospace;fill:#222}.title{font-weight:bold;font-size:14px}.small{font-size:11px;fill:#555}
.label{fill:#fff}
.group{fill:#f6f7f9;stroke:#c5cad3}.box{fill:#fff;stroke:#8a93a3}.bar{fill:#2f6fb3}.other{fill:#b9c2cf}
.line{stroke:#8a93a3;stroke-width:2}.healthy{stroke:#2a8a43}.degraded,.connecting{stroke:#b87a00;stroke-dasharray:8 3}
.down,.unknown{stroke:#c62828;stroke-dasharray:2 4}`

// Picture is a picture on its way; sizes are in pixels.
type Picture struct {
	b             strings.Builder
	Width, Height int
}

// Text writes a line of text. A longer one than most runes is cut; it is whole where the pointer rests.
func (p *Picture) Text(x, y int, class, text string, most int) {
	text = strings.ReplaceAll(text, "\n", " ")
	short := []rune(text)
	if len(short) > most {
		short = append(short[:most-1], '…')
	}
	fmt.Fprintf(&p.b, `<text x="%d" y="%d" class="%s">%s<title>%s</title></text>`+"\n", x, y, Escape(class), Escape(string(short)), Escape(text))
}

// Box draws a rectangle.
func (p *Picture) Box(x, y, width, height int, class string) {
	fmt.Fprintf(&p.b, `<rect x="%d" y="%d" width="%d" height="%d" rx="4" class="%s"/>`+"\n", x, y, width, height, Escape(class))
}

// Line draws a line, of which a title is shown where the pointer rests.
func (p *Picture) Line(x1, y1, x2, y2 int, class, title string) {
	fmt.Fprintf(&p.b, `<line x1="%d" y1="%d" x2="%d" y2="%d" class="%s"><title>%s</title></line>`+"\n", x1, y1, x2, y2, Escape(class), Escape(title))
}

// String is the picture as a file.
func (p *Picture) String() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d"><style>%s</style>
<rect width="100%%" height="100%%" fill="#fff"/>
%s</svg>
`, p.Width, p.Height, style, p.b.String())
}

// Page is an HTML page with the picture and a text below it.
func (p *Picture) Page(title, text string) string {
	return fmt.Sprintf(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>%s</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{font-family:sans-serif;margin:2em}svg{max-width:100%%;height:auto}pre{font-size:13px}</style></head>
<body><h1>%[1]s</h1>
%s<pre>
%s</pre></body></html>
`, Escape(title), p.String(), Escape(text))
}

// Escape writes a text so that it is nothing but text in XML and HTML. Lines stay.
func Escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(strings.Map(Printable, text))) // a strings.Builder takes everything
	return strings.ReplaceAll(b.String(), "&#xA;", "\n")
}

// Printable replaces runes that cannot be printed, or that reorder those around them; line ends stay.
func Printable(r rune) rune {
	if !unicode.IsPrint(r) && r != '\n' {
		return unicode.ReplacementChar
	}
	return r
}
