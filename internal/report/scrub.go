package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// scrubber removes secrets from texts. The zero value knows none by their value.
type scrubber struct {
	known []string // pairs for a strings.Replacer
}

// secretLeast is the length in bytes from which on a value of a Secret is taken for one wherever it occurs.
const secretLeast = 8

// know has a value removed, however it is written.
func (s *scrubber) know(value []byte) {
	text := strings.TrimSpace(string(value))
	if len(text) < secretLeast {
		return
	}
	forms := []string{text, base64.StdEncoding.EncodeToString(value), base64.StdEncoding.EncodeToString([]byte(text)), hex.EncodeToString([]byte(text))}
	if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
		forms = append(forms, hex.EncodeToString(raw), string(raw))
	}
	for _, form := range forms {
		if len(form) >= secretLeast {
			s.known = append(s.known, form, removed)
		}
	}
}

// What secrets look like.
var (
	privatePEM = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
	webToken   = regexp.MustCompile(`eyJ[\w-]{8,}\.[\w-]+\.[\w-]*`)
	inURL      = regexp.MustCompile(`://[^/\s:@"']+:[^/\s@"']+@`)
	bearer     = regexp.MustCompile(`(?i)\b(bearer|basic)[ \t]+[\w.~+/=-]{8,}`)
	// named is a value with a name that says what it is, in YAML, JSON, flags and prose.
	named = regexp.MustCompile(`(?i)\b([\w-]*(?:password|passwd|secret|token|api[_-]?key|private[_-]?key|preshared[_-]?key|credentials?))(\\?["']?[ \t]*[:=][ \t]*)(\\?"[^"\n]*"|'[^'\n]*'|[^\s",;{}\[\]]+)`)
	// argument is one that follows its flag.
	argument = regexp.MustCompile(`(?i)(--?[\w-]*(?:password|passwd|secret|token|key)[ \t]+)[^\s"']+`)
	// A WireGuard key is 32 bytes. A digest of an image is no secret.
	wireGuard = regexp.MustCompile(`[A-Za-z0-9+/]{43}=`)
	hexKey    = regexp.MustCompile(`(?i)(sha256:)?\b[0-9a-f]{64}\b`)
)

// clean returns a text without secrets, and without what commands a terminal. Keys remain comparable.
func (s *scrubber) clean(text string) string {
	text = strings.NewReplacer(s.known...).Replace(text)
	text = privatePEM.ReplaceAllString(text, removed)
	text = webToken.ReplaceAllString(text, removed)
	text = inURL.ReplaceAllString(text, "://"+removed+"@")
	text = wireGuard.ReplaceAllStringFunc(text, fingerprint)
	text = hexKey.ReplaceAllStringFunc(text, func(key string) string {
		if strings.HasPrefix(strings.ToLower(key), "sha256:") {
			return key
		}
		return fingerprint(key)
	})
	text = bearer.ReplaceAllString(text, "$1 "+removed)
	text = argument.ReplaceAllString(text, "${1}"+removed)
	text = named.ReplaceAllString(text, "$1$2"+removed)
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

func fingerprint(key string) string {
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("(key %x)", sum[:4])
}
