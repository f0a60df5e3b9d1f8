package report

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/testbed/require"
)

// TestBinaryPassword checks that a key whose bytes look like a name, a colon and a short password that is no text does
// no harm: keys are random.
func TestBinaryPassword(t *testing.T) {
	var s scrubber
	password := "\xb7I\xf6!\xdcQ\x8b"
	s.addSecret([]byte(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\xff", 24) + ":" + password))))
	if got := s.clean("kept " + password + " kept"); strings.Contains(got, "I") || !strings.HasPrefix(got, "kept ") {
		t.Errorf("%q", got)
	}
}

// TestForms checks that a value of a Secret, and each part of it, is removed in every encoding.
func TestForms(t *testing.T) {
	const secret = "Planted?>~ÿ-valué&< +/x" // differs between the alphabets of base64, and is escaped in JSON and URLs
	docker := `{"auths":{"registry.example":{"username":"deployer","password":"pl4nted-docker","auth":"` +
		base64.StdEncoding.EncodeToString([]byte("deployer:pl4nted-inner")) + `"}}}`
	quoted, err := json.Marshal(secret)
	require.NoError(t, err)
	quotedTwice, err := json.Marshal(string(quoted))
	require.NoError(t, err)
	long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 50) + secret + strings.Repeat("x", 50)))
	escaped := base64.StdEncoding.EncodeToString([]byte("x" + secret + "ÿ~?")) // with a slash and a plus sign
	lines := long[:64] + "\n" + long[64:128] + "\n" + long[128:]
	var s scrubber
	for _, value := range []string{secret, docker, "hunter2", "first line, planted-one\nsecond line, planted-two\n"} {
		s.addSecret([]byte(value))
	}
	for what, form := range map[string]string{
		"plain": secret, "padded": base64.StdEncoding.EncodeToString([]byte(secret)), "not padded": base64.RawStdEncoding.EncodeToString([]byte(secret)),
		"of URLs": base64.URLEncoding.EncodeToString([]byte(secret)), "of URLs, not padded": base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"within more": base64.RawURLEncoding.EncodeToString([]byte("user:" + secret + "\n")), "twice": base64.StdEncoding.EncodeToString([]byte("x" + secret + secret)),
		"after a path": "/v1/blob/" + base64.RawStdEncoding.EncodeToString([]byte(secret)), "hexadecimal": hex.EncodeToString([]byte(secret)), "HEX": fmt.Sprintf("%X", secret),
		"as encodeURIComponent has it": "Planted%3F%3E~%C3%BF-valu%C3%A9%26%3C%20%2B%2Fx",
		"in lower case":                "Planted%3f%3e~%c3%bf-valu%c3%a9%26%3c%20%2b%2fx",
		"every byte":                   everyByte(secret, "%%%02x"), "every character in JSON": everyRune(secret, `\u%04x`), "a slash in JSON": strings.ReplaceAll(secret, "/", `\/`),
		"JSON in JSON": string(quotedTwice[3 : len(quotedTwice)-3]), "a URL in a query": url.QueryEscape("https://x.example/?p=" + url.QueryEscape(secret)),
		"twice in base64":    base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte("x:" + secret)))),
		"in lines of base64": lines, "in lines of base64, in JSON": strings.ReplaceAll(lines, "\n", `\n`),
		"base64 in a query": url.QueryEscape(escaped), "base64 in JSON": strings.NewReplacer("/", `\/`, "+", `\u002B`).Replace(escaped),
		"bytes in Go": everyByte(secret, `\x%02x`),
		"in a query":  url.QueryEscape(secret), "in a path": url.PathEscape(secret), "in JSON": string(quoted),
		"a password": "pl4nted-docker", "an inner password": "pl4nted-inner", "an inner password, encoded": base64.RawURLEncoding.EncodeToString([]byte("x:pl4nted-inner")),
		"of the file": base64.StdEncoding.EncodeToString([]byte(docker)), "of a part of the file": base64.StdEncoding.EncodeToString([]byte(docker[10:80])),
		"a short one": "hunter2", "a line": "second line, planted-two",
	} {
		for _, frame := range []string{"kept %s kept", "kept=%s&kept=x", `{"kept":"%s"}`, "kept (%[1]s %[1]s)"} {
			text := fmt.Sprintf(frame, form)
			got := s.clean(text)
			if strings.Contains(got, strings.Trim(form, `"=`)) || !strings.Contains(got, "kept") {
				t.Errorf("%s: %s became %s", what, text, got)
			}
		}
	}
	for _, text := range []string{
		"hunter22 is no secret", "node-helper-7d9f8b6c5d-x2x4z", "kernel state + link lqn-gw1000 mtu 1380", "registry.example/liqonet/liqonet:v1.2.3",
		"sha256:" + strings.Repeat("ab", 32), "a-very-long-name-of-a-pod-of-the-gateway-43", "?page=2&sort=name",
	} {
		if got := s.clean(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestWrappedLines checks that nothing is left of base64 in lines, whatever their width and end.
func TestWrappedLines(t *testing.T) {
	token := strings.Repeat("planted-token?", 40)
	var s scrubber
	s.addSecret([]byte(token))
	for _, width := range []int{60, 64, 76, 80, 100, 128} {
		for _, end := range []string{"\n", "\r\n", "\n    ", `\n`, `\r\n`, `\\n`, `\\r\\n`} {
			rest, text := base64.StdEncoding.EncodeToString([]byte(token)), ""
			for ; len(rest) > width; rest = rest[width:] {
				text += rest[:width] + end
			}
			if got := s.clean("kept " + text + rest + " kept"); len(got) > 100 || !strings.HasPrefix(got, "kept ") || !strings.HasSuffix(got, " kept") {
				t.Errorf("width %d, %q: %d bytes are left: %.300s", width, end, len(got), got)
			}
		}
	}
}

// everyByte and everyRune format each part of a text.
func everyByte(text, format string) (all string) {
	for _, b := range []byte(text) {
		all += fmt.Sprintf(format, b)
	}
	return all
}

func everyRune(text, format string) (all string) {
	for _, r := range text {
		all += fmt.Sprintf(format, r)
	}
	return all
}

// TestShapes checks that texts in the form of a secret are removed if their value is not known.
func TestShapes(t *testing.T) {
	key := base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("\xa7\x31", 16)))
	for _, text := range []string{
		"https://store.example/a?sv=2024&sig=PLANTED%2Fx%3D&se=1", `{"url":"https://store.example/a?se=1\u0026sig=PLANTED"}`,
		"https://bucket.example/a?X-Amz-Algorithm=x&X-Amz-Credential=PLANTED/x&X-Amz-Signature=PLANTED", "https://x.example/?X-Goog-Signature=PLANTED",
		"https://cdn.example/a?Signature=PLANTED&Key-Pair-Id=x", "https://maps.example/?key=PLANTED", `{"auth":"PLANTED"}`, `\"auth\": \"PLANTED\"`,
		"password=PLANTED", "token: PLANTED", "key " + key + "PLANTED"[:0],
	} {
		if got := new(scrubber).clean(text); strings.Contains(got, "PLANTED") || strings.Contains(got, key) {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// TestWordsOfTheArchive checks that a value that the archive itself uses is removed once and does not loop.
func TestWordsOfTheArchive(t *testing.T) {
	var s scrubber
	s.addSecret([]byte("removed"))
	if got := s.clean("it was removed"); len(got) > 100 {
		t.Errorf("%s", got)
	}
}

// TestFoldedLines checks the removal of a secret with blanks, at which YAML breaks a long text.
func TestFoldedLines(t *testing.T) {
	var s scrubber
	s.addSecret([]byte("planted secret of four"))
	document := func() map[string]any {
		return map[string]any{"args": []any{"network", strings.Repeat("x", 70) + " planted secret of four"}}
	}
	folded, err := yaml.Marshal(document())
	if err != nil || strings.Contains(string(folded), "planted secret of four") || !strings.Contains(s.clean(string(folded)), "planted") {
		t.Fatalf("nothing was tested: %v\n%s", err, folded)
	}
	text, err := yaml.Marshal(eachText(document(), s.withoutKnown))
	if err != nil || strings.Contains(s.clean(string(text)), "planted") {
		t.Errorf("%v\n%s", err, text)
	}
}
