package liqonet_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"liqonet.io/liqonet/internal/testbed/require"
)

// commentColumns is the largest width of a line with a comment. A tab counts as four columns.
const commentColumns = 120

// TestCommentsFit checks the width of the lines with comments in the Go files of all modules.
func TestCommentsFit(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range wideComments(t, text) {
			t.Errorf("%s:%d: a comment beyond column %d", path, line, commentColumns)
		}
		return nil
	})
	require.NoError(t, err)
}

func wideComments(t *testing.T, text []byte) (wide []int) {
	t.Helper()
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	lines := strings.Split(string(text), "\n")
	var s scanner.Scanner
	s.Init(file, text, func(at token.Position, problem string) { t.Errorf("%s: %s", at, problem) }, scanner.ScanComments)
	for {
		at, kind, comment := s.Scan()
		if kind == token.EOF {
			return wide
		}
		if kind != token.COMMENT {
			continue
		}
		first := file.Line(at)
		for line := first; line <= first+strings.Count(comment, "\n"); line++ {
			if utf8.RuneCountInString(strings.ReplaceAll(lines[line-1], "\t", "    ")) > commentColumns {
				wide = append(wide, line)
			}
		}
	}
}

// TestWideComments: a comment is wide by its line, a string that looks like one is not.
func TestWideComments(t *testing.T) {
	long := strings.Repeat("x", commentColumns-6)
	for name, c := range map[string]struct {
		line string
		want int
	}{
		"fits":         {"// " + long, 0},
		"after a tab":  {"\t// " + long, 1},
		"after code":   {"var long = 1 // " + long, 1},
		"in a string":  {"var a = `https://" + long + "`", 0},
		"wide letters": {"// " + strings.Repeat("ä", commentColumns-3), 0},
	} {
		if got := wideComments(t, []byte("package p\n"+c.line+"\n")); len(got) != c.want {
			t.Errorf("%s: %d wide comments, want %d", name, len(got), c.want)
		}
	}
}
