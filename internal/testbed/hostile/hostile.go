// Package hostile has texts that a peer, a node or a file could contain to deceive a terminal, and checks for what is
// printed of them. Tests use it.
package hostile

import (
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Text is a name that a peer, a node or a file could have: it clears the screen, renames the window, writes a
// link, forges a line, a column and an answer, and reverses what follows.
const Text = "\x1b[2J\x1b]0;owned\a\x1b]8;;http://x\x1b\\b\r\nc   healthy\t\u009b31m\u202eevil\x7f\x00\x9b"

// Obeyed returns the characters of a text that a terminal would obey, or the whole text if it is no UTF-8.
func Obeyed(text string) string {
	if !utf8.ValidString(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

// CheckAnswers checks answers for people. written returns all of them by name, with the same text in each field. A text
// of others must be printed without control characters and must not add lines.
func CheckAnswers(t *testing.T, written func(text string) map[string]string) {
	t.Helper()
	plain := written("x")
	for name, text := range written(Text) {
		if bad := Obeyed(text); bad != "" {
			t.Errorf("%s: a terminal would obey %q in\n%q", name, bad, text)
		}
		if got, want := strings.Count(text, "\n"), strings.Count(plain[name], "\n"); got != want || want == 0 {
			t.Errorf("%s: %d lines, want %d: forged ones\n%s", name, got, want, text)
		}
		if !strings.Contains(text, "owned") {
			t.Errorf("%s: no text of others in it:\n%s", name, text)
		}
	}
}

// Written returns the text that a function writes. An error is returned as text.
func Written(write func(io.Writer) error) string {
	var b strings.Builder
	if err := write(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// Filled returns a value in which all exported fields are set: texts to the given one, slices to two elements.
func Filled[T any](text string) T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), text)
	return v
}

func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), text)
			}
		}
	}
}
