package report

import "strings"

// Lengths of runs of the letters that base64 and hexadecimal consist of, in bytes.
const (
	encodedLeast = 11 // of minSecret bytes in base64
	keyLeast     = 43 // of 32 bytes in base64
	// Lines of a wrapped text have equal lengths, but for the last one: mostly 64 or 76, or a terminal's width.
	lineLetters     = 60
	lineLettersMost = 128
)

// letters are those of both alphabets of base64, and of hexadecimal.
var letters = func() (is [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-") {
		is[c] = true
	}
	return is
}()

// nextRun returns the first run of at least so many letters that begins at a position or behind it; an empty one if
// there is none.
func nextRun(text string, from, least int) (begin, end int) {
	for begin = from; begin+least <= len(text); begin = end + 1 {
		end = begin + lettersAt(text[begin:])
		if end-begin >= least {
			return begin, end
		}
	}
	return len(text), len(text)
}

// lettersAt counts the letters with which a text begins.
func lettersAt(text string) int {
	for i := range len(text) {
		if !letters[text[i]] {
			return i
		}
	}
	return len(text)
}

// nextEncoded returns the first run in a line that may encode a secret.
func nextEncoded(text string, from int) (begin, end int) { return nextRun(text, from, encodedLeast) }

// nextWrapped returns the first run that continues in further lines: of a text, or of a string of JSON.
func nextWrapped(text string, from int) (begin, end int) {
	for begin, end = nextRun(text, from, lineLetters); begin < end; begin, end = nextRun(text, end, lineLetters) {
		all := end
		for more := continued(text[all:]); more > 0; more = continued(text[all:]) {
			all += more
		}
		if all > end {
			return max(begin, end-lineLettersMost), all
		}
	}
	return len(text), len(text)
}

// continued returns the length of a line break and the letters of the line behind it; 0 if there are none.
func continued(text string) int {
	for _, lineEnd := range []string{"\r\n", "\n", `\r\n`, `\n`, `\\r\\n`, `\\n`} { // the last two: JSON in JSON
		if rest, found := strings.CutPrefix(text, lineEnd); found {
			rest = strings.TrimLeft(rest, " \t")
			if own := min(lettersAt(rest), lineLettersMost); own > 0 {
				return len(text) - len(rest) + own
			}
			return 0
		}
	}
	return 0
}

// without removes the runs for which a function returns true.
func without(text string, next func(text string, from int) (begin, end int), secret func(run string) bool) string {
	var rest strings.Builder
	done := 0
	for begin, end := next(text, 0); begin < end; begin, end = next(text, end) {
		if secret(text[begin:end]) {
			rest.WriteString(text[done:begin] + removed)
			done = end
		}
	}
	if done == 0 {
		return text
	}
	rest.WriteString(text[done:])
	return rest.String()
}

// names reports whether a line may have one of some words, in lower or upper case, with one of these bytes behind it.
func names(line, behind string, words ...string) bool {
	for i := 1; i < len(line); i++ {
		if strings.IndexByte(behind, line[i]) < 0 || !letters[line[i-1]] {
			continue
		}
		for _, w := range words {
			if begin := i - len(w); begin >= 0 && strings.EqualFold(line[begin:i], w) {
				return true
			}
		}
	}
	// By Unicode, these are forms of k and s.
	return strings.Contains(line, "\u212a") || strings.Contains(line, "\u017f")
}
