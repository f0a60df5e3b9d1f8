package pathtest

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// firstOfThis was added by the first commit of this release: the commit before it is the release before.
const firstOfThis = "docs/decisions/0020-fields-of-later-releases.md"

// errNoHistory says that a clone does not have the commits of the release before.
var errNoHistory = errors.New("no history")

// buildBefore builds the helpers of the release before this one from the repository, once a machine. A clone without
// history has only this release: then it is this one that reads records as strictly as the one before.
func buildBefore(t *testing.T) string {
	t.Helper()
	commit, err := lastBefore(t)
	if err != nil {
		t.Logf("stands for the release before this one: this one with strict decoding: %v", err)
		return buildChanged(t, change{"internal/records/encoding.go", `return d, unknown, d\.validate\(\)`,
			`if len(unknown) > 0 { return d, nil, &UnknownFieldsError{Fields: unknown} }; $0`})
	}
	t.Logf("the release before this one is commit %s", commit)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(cache, "liqonet-tests", "helpers-"+commit+"-"+runtime.Version())
	if _, err := os.Stat(program); err == nil {
		return program
	}
	tree := t.TempDir()
	archive := filepath.Join(tree, "tree.tar")
	run(t, repository(t), "git", "-c", "safe.directory=*", "archive", "--output", archive, commit)
	run(t, tree, "tar", "-xf", archive)
	built := build(t, tree)
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, tree, "cp", built, program+".new") // the cache can be on another file system
	if err := os.Rename(program+".new", program); err != nil {
		t.Fatal(err)
	}
	return program
}

// lastBefore is the last commit of the release before this one.
func lastBefore(t *testing.T) (string, error) {
	git := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "log", "--diff-filter=A", "--format=%P", "-1", "--", firstOfThis)
	git.Dir = repository(t)
	parents, err := git.Output()
	if err != nil {
		return "", errors.Join(errNoHistory, err)
	}
	commit := strings.TrimSpace(string(parents))
	if commit == "" {
		return "", errNoHistory
	}
	return commit, nil
}

// buildAfter builds helpers of a release to come: their records have fields that this release does not know, in every object,
// and their echoes have a flag and bytes of which it knows nothing.
func buildAfter(t *testing.T) string {
	t.Helper()
	return buildChanged(t,
		change{"internal/records/encoding.go", `yaml\.Marshal\(d\)`, `yaml.Marshal(withLater(d))`},
		change{"internal/records/later.go", "", laterFields},
		change{"netops/echo/message.go", `PutUint16\(fixed\[6:\], (.*)\)\n`, "PutUint16(fixed[6:], 1<<15|$1)\n"},
		change{"netops/echo/message.go", `var zeros \[256\]byte`, "var zeros = [256]byte{1, 2, 3, 4, 5, 6, 7, 8}"},
	)
}

// laterFields adds fields to what is written, but for objects whose keys are names.
const laterFields = `package records

import "encoding/json"

func withLater(d any) (document any) {
	text, err := json.Marshal(d)
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		panic(err)
	}
	addLater("", document)
	return document
}

func addLater(key string, value any) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			addLater(key, one)
		}
	case map[string]any:
		for k, one := range v {
			addLater(k, one)
		}
		if key != "overlaySources" && key != "refused" && key != "peerings" {
			v["later"] = map[string]any{"some": []any{1, "x"}}
		}
	}
}
`

// change replaces what an expression matches, once, in a file of the tree; with an empty expression it adds the file.
type change struct{ file, match, replacement string }

// buildChanged builds helpers from the tree with changes, which the tree does not see.
func buildChanged(t *testing.T, changes ...change) string {
	t.Helper()
	texts := map[string]string{}
	for _, c := range changes {
		path := filepath.Join(repository(t), c.file)
		if c.match == "" {
			texts[path] = c.replacement
			continue
		}
		if _, changed := texts[path]; !changed {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
		match := regexp.MustCompile(c.match)
		if n := len(match.FindAllString(texts[path], -1)); n != 1 {
			t.Fatalf("%s has %d times %q, and is to be changed there for a release to come: want once", c.file, n, c.match)
		}
		texts[path] = match.ReplaceAllString(texts[path], c.replacement)
	}
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range texts {
		overlay.Replace[path] = filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(overlay.Replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return build(t, repository(t), "-overlay", file)
}

// build builds this package's test program, which runs helpers, from a tree.
func build(t *testing.T, tree string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "helpers")
	// The other tests, which run meanwhile, measure time.
	args := append([]string{"-n", "19", "go", "test", "-c", "-o", program}, flags...)
	run(t, filepath.Join(tree, "bench"), "nice", append(args, "./pathtest")...)
	return program
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// repository is the tree that this package is in: tests run in their package's folder.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
