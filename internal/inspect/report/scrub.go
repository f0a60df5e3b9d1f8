package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// scrubber removes secrets from texts. The zero value knows no values. Values are added before the first text.
type scrubber struct {
	known []string            // removed at any position
	raw   map[string][]string // removed from decoded texts; by their first minSecret bytes
	words []word              // removed as words

	once     sync.Once
	replacer *strings.Replacer // of known
}

// word is a value that is removed where no letter or digit is beside it.
type word struct {
	text string
	at   *regexp.Regexp
}

// Lengths in bytes. A shorter value, such as a number, occurs in every text: it is removed only beside a name that
// identifies it.
const (
	minSecret = 8 // minimum for removal at any position
	minWord   = 4 // minimum for removal as a word
	lineLeast = 16
)

// addSecret adds a value of a Secret and its parts, in all encodings.
func (s *scrubber) addSecret(value []byte) {
	text := strings.TrimSpace(string(value))
	s.addText(text)
	for line := range strings.Lines(text) { // a log may contain a single line
		if line = strings.TrimSpace(line); len(line) >= lineLeast && line != text {
			s.known = append(s.known, line)
		}
	}
	var document any
	if json.Unmarshal([]byte(text), &document) == nil {
		eachText(document, func(text string) string {
			s.addText(text)
			return text
		})
	}
}

// eachText replaces each text in a document of JSON, for example in a .dockerconfigjson.
func eachText(value any, replace func(string) string) any {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			value[name] = eachText(v, replace)
		}
	case []any:
		for i, v := range value {
			value[i] = eachText(v, replace)
		}
	case string:
		return replace(value)
	}
	return value
}

func (s *scrubber) addText(text string) {
	switch {
	case len(text) >= minSecret:
		s.addRaw(text)
		if query := strings.ReplaceAll(text, " ", "+"); query != text {
			s.addRaw(query)
		}
		s.known = append(s.known, text)
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil && len(raw) >= minSecret {
			s.known = append(s.known, string(raw))
			s.addRaw(string(raw))
			if _, password, ok := strings.Cut(string(raw), ":"); ok { // of basic authentication
				s.addText(password)
			}
		}
	case len(text) >= minWord && !utf8.ValidString(text): // of a key; no pattern can have it, and no name does
		s.known = append(s.known, text)
	case len(text) >= minWord:
		s.words = append(s.words, word{text, regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(text) + `(\W|$)`)})
	}
}

// addRaw adds a value of at least minSecret bytes.
func (s *scrubber) addRaw(value string) {
	if s.raw == nil {
		s.raw = make(map[string][]string)
	}
	s.raw[value[:minSecret]] = append(s.raw[value[:minSecret]], value)
}

// withoutKnown removes values of Secrets, plain and encoded.
func (s *scrubber) withoutKnown(text string) string {
	s.once.Do(func() {
		// The longest first: one may be a prefix of another.
		slices.SortFunc(s.known, func(a, b string) int { return len(b) - len(a) })
		var pairs []string
		for _, form := range s.known {
			pairs = append(pairs, form, removed)
		}
		s.replacer = strings.NewReplacer(pairs...)
	})
	text = s.replacer.Replace(text)
	for _, word := range s.words {
		for range 2 { // twice, as neighbours share a separator
			if strings.Contains(text, word.text) {
				text = word.at.ReplaceAllString(text, "${1}"+removed+"${2}")
			}
		}
	}
	if len(s.raw) == 0 {
		return text
	}
	for depth := range maxNesting {
		text = s.withoutEscaped(text, depth+1)
	}
	known := make(map[string]bool) // names occur many times in a text
	secret := func(run string) bool {
		is, seen := known[run]
		if !seen {
			is = s.encodes(run, maxNesting)
			known[run] = is
		}
		return is
	}
	return without(without(text, nextWrapped, secret), nextEncoded, secret)
}

// maxNesting is how many encodings of a text are decoded, for example JSON in a string of JSON.
const maxNesting = 2

// withoutEscaped removes values of Secrets whose bytes are escaped for URLs or JSON, up to times levels.
func (s *scrubber) withoutEscaped(text string, times int) string {
	if !strings.ContainsAny(text, `%\`) {
		return text
	}
	var rest strings.Builder
	for line := range strings.Lines(text) {
		if !strings.ContainsAny(line, `%\`) {
			rest.WriteString(line)
			continue
		}
		plain, at := line, []int(nil)
		for range times {
			plain, at = unescaped(plain, at)
		}
		done := 0 // bytes of the line
		if len(plain) < len(line) {
			places := append(s.secretsIn(plain), s.escapedRuns(plain, at)...)
			slices.SortFunc(places, func(a, b [2]int) int { return a[0] - b[0] })
			for _, found := range places {
				if begin, end := at[found[0]], at[found[1]]; end > done {
					rest.WriteString(line[done:max(begin, done)] + removed)
					done = end
				}
			}
		}
		rest.WriteString(line[done:])
	}
	return rest.String()
}

// secretsIn returns the positions of values of Secrets, in order: first byte and end. It looks at each byte once,
// however many values there are: a hub of a hundred peerings has a thousand.
func (s *scrubber) secretsIn(plain string) (places [][2]int) {
	for i := range len(plain) - minSecret + 1 {
		for _, secret := range s.raw[plain[i:i+minSecret]] {
			if strings.HasPrefix(plain[i:], secret) {
				places = append(places, [2]int{i, i + len(secret)})
			}
		}
	}
	return places
}

// escapedRuns returns the positions of runs that encode a secret and have letters that were escaped: a slash or a plus
// sign of base64, in URLs or JSON. at has their positions before.
func (s *scrubber) escapedRuns(plain string, at []int) (places [][2]int) {
	for begin, end := nextEncoded(plain, 0); begin < end; begin, end = nextEncoded(plain, end) {
		if at[end]-at[begin] > end-begin && s.encodes(plain[begin:end], maxNesting) {
			places = append(places, [2]int{begin, end})
		}
	}
	return places
}

// escape is an escaped character in URLs or strings of JSON, or a byte in those of Go.
var escape = regexp.MustCompile(`\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2}|\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[^u]`)

// unescaped decodes the escapes in a text. of has the positions of its bytes in an earlier text; nil: the same. at has
// those of the result. Both include the end.
func unescaped(text string, of []int) (plain string, at []int) {
	if of == nil {
		of = make([]int, len(text)+1)
		for i := range of {
			of[i] = i
		}
	}
	var b []byte
	done := 0
	for _, m := range escape.FindAllStringIndex(text, -1) {
		b, at = append(b, text[done:m[0]]...), append(at, of[done:m[0]]...)
		var one string
		if found := text[m[0]:m[1]]; found[0] == '%' {
			one, _ = url.PathUnescape(found)
		} else if len(found) == len(`\x00`) && found[1] == 'x' {
			one, _ = url.PathUnescape("%" + found[2:])
		} else if json.Unmarshal([]byte(`"`+found+`"`), &one) != nil {
			one = found[1:]
		}
		for i := range len(one) {
			b, at = append(b, one[i]), append(at, of[m[0]])
		}
		done = m[1]
	}
	return string(append(b, text[done:]...)), append(at, of[done:]...)
}

// encodes reports whether a run of letters is base64 or hexadecimal of a Secret's value, or of such a run.
func (s *scrubber) encodes(run string, depth int) bool {
	return slices.ContainsFunc(decodings(run), func(plain string) bool {
		if len(s.secretsIn(plain)) > 0 {
			return true
		}
		for begin, end := nextEncoded(plain, 0); depth > 1 && begin < end; begin, end = nextEncoded(plain, end) {
			if s.encodes(plain[begin:end], depth-1) {
				return true
			}
		}
		return false
	})
}

var breaks = regexp.MustCompile(`\\+[nr]|\s`)

// standardAlphabet turns base64 for URLs into that with the other alphabet.
var standardAlphabet = strings.NewReplacer("-", "+", "_", "/")

// decodings returns the possible plain texts of a run. It may begin with letters before the encoding, such as a part of
// a path.
func decodings(run string) (plain []string) {
	if strings.ContainsAny(run, "\n\\") {
		run = breaks.ReplaceAllString(run, "")
	}
	standard := standardAlphabet.Replace(run)
	for offset := range 4 {
		text, _ := base64.RawStdEncoding.DecodeString(standard[offset:])
		plain = append(plain, string(text)) // up to the first error
	}
	for offset := range 2 {
		text, _ := hex.DecodeString(run[offset:])
		plain = append(plain, string(text))
	}
	return plain
}

// Forms of secrets.
var (
	privatePEM = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
	webToken   = regexp.MustCompile(`eyJ[\w-]{8,}\.[\w-]+\.[\w-]*`)
	inURL      = regexp.MustCompile(`://[^/\s:@"']+:[^/\s@"']+@`)
	bearer     = regexp.MustCompile(`(?i)\b(bearer|basic)[ \t]+[\w.~+/=-]{8,}`)
	// named is a value with a name that identifies it, in YAML, JSON, flags and prose.
	named = regexp.MustCompile(`(?i)\b([\w-]*(?:password|passwd|secret|token|api[_-]?key|private[_-]?key|preshared[_-]?key|credentials?|auth))(\\?["']?[ \t]*[:=][ \t]*)(\\?"[^"\n]*"|'[^'\n]*'|[^\s",;{}\[\]]+)`)
	// argument is a value that follows its flag.
	argument = regexp.MustCompile(`(?i)(--?[\w-]*(?:password|passwd|secret|token|key)[ \t]+)[^\s"']+`)
	// signed is a parameter that makes a URL a credential. In JSON, the ampersand may be escaped.
	signed = regexp.MustCompile(`(?i)((?:[?&;]|\\u0026|%26)(?:sig|signature|x-(?:amz|goog)-(?:signature|credential)|awsaccesskeyid|code|key)=)[^&\s"'\\]+`)
	// A WireGuard key is 32 bytes. A digest of an image is no secret.
	wireGuard = regexp.MustCompile(`[A-Za-z0-9+/]{43}=`)
	bareKey   = regexp.MustCompile(`[A-Za-z0-9+/_-]{43,}=?`)
	hexKey    = regexp.MustCompile(`(?i)(sha256:)?\b[0-9a-f]{64}\b`)
)

// clean returns a text without secrets, and without control sequences for a terminal. Keys remain comparable.
func (s *scrubber) clean(text string) string {
	text = s.withoutKnown(text)
	if strings.Contains(text, "-----BEGIN ") {
		text = privatePEM.ReplaceAllString(text, removed)
	}
	var lines strings.Builder
	for line := range strings.Lines(text) {
		lines.WriteString(cleanLine(line))
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, lines.String())
}

// cleanLine removes the secrets whose forms do not reach beyond a line. These expressions take a microsecond for some
// ten bytes, so each is preceded by a search for what all its matches have.
func cleanLine(line string) string {
	if strings.Contains(line, "eyJ") {
		line = webToken.ReplaceAllString(line, removed)
	}
	if strings.Contains(line, "://") {
		line = inURL.ReplaceAllString(line, "://"+removed+"@")
	}
	if strings.Contains(line, "=") {
		line = signed.ReplaceAllString(line, "${1}"+removed)
	}
	if begin, end := nextRun(line, 0, keyLeast); begin < end {
		line = wireGuard.ReplaceAllStringFunc(line, fingerprint)
		line = bareKey.ReplaceAllStringFunc(line, func(key string) string {
			// Names have no capital letters.
			if len(strings.TrimSuffix(key, "=")) == keyLeast && strings.ToLower(key) != key && strings.ToUpper(key) != key {
				return fingerprint(key)
			}
			return key
		})
		line = hexKey.ReplaceAllStringFunc(line, func(key string) string {
			if strings.HasPrefix(strings.ToLower(key), "sha256:") {
				return key
			}
			return fingerprint(key)
		})
	}
	if names(line, " \t", "bearer", "basic") {
		line = bearer.ReplaceAllString(line, "$1 "+removed)
	}
	if names(line, " \t", "password", "passwd", "secret", "token", "key") {
		line = argument.ReplaceAllString(line, "${1}"+removed)
	}
	if names(line, "\\\"' \t:=", "password", "passwd", "secret", "token", "key", "credential", "credentials", "auth") {
		line = named.ReplaceAllString(line, "$1$2"+removed)
	}
	return line
}

func fingerprint(key string) string {
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("(key %x)", sum[:4])
}
