package ui

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A terminal executes control characters: ESC begins sequences that move the cursor, rename the window or insert an
// answer as if the user had typed it; U+009B is ESC [ in one character; format characters such as U+202E reverse the
// text that follows. Names and reasons come from peers, nodes and files.

// Visible makes a text harmless for a terminal: what cannot be printed is shown as Go would write it. Line ends stay;
// tabs become blanks.
func Visible(text string) string {
	return strings.ReplaceAll(escape(text, "\n\t", func(r rune) string { return strings.Trim(fmt.Sprintf("%+q", r), "'") }), "\t", " ")
}

// VisibleCell is visible for a text that must stay in its line and column.
func VisibleCell(text string) string {
	return strings.ReplaceAll(Visible(text), "\n", `\n`)
}

// visibleBlock is visible for a text that may have several lines: lines after the first are indented, so that none
// looks like a line of liqoctl's own, such as a hint.
func visibleBlock(text string) string {
	return strings.ReplaceAll(Visible(text), "\n", "\n  ")
}

// Writef writes formatted text, in which values that are texts stay in their line.
func Writef(w io.Writer, format string, args ...any) {
	for i, a := range args {
		if v := reflect.ValueOf(a); v.Kind() == reflect.String {
			args[i] = VisibleCell(v.String())
		}
	}
	fmt.Fprintf(w, format, args...)
}

// escape replaces characters that are not printable, except the runes in keep.
func escape(text, keep string, by func(rune) string) string {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) && !strings.ContainsRune(keep, r) || r == utf8.RuneError }
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i]) // not UTF-8: some terminals execute single bytes
		case r != utf8.RuneError && hidden(r):
			b.WriteString(by(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// visibleJSON escapes JSON for a terminal without changing its meaning: it has no such characters outside of strings.
// It does the same for YAML, where strings that contain such characters are in double quotes, except for a few
// invisible characters.
func visibleJSON(text string) string {
	return escape(text, "\n", func(r rune) string {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}
