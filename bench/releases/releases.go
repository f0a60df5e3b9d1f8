// Package releases builds programs of the releases with which this one has to work, for tests.
package releases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// Release is one before or after this one.
type Release string

// The releases next to this one.
const (
	Before Release = "before"
	After  Release = "after"
)

// firstOfThis was added by the first commit of this release: the commit before it is the release before.
const firstOfThis = "internal/helper/guard.go"

// Program is what to build: a package, or its test program, of a module of the repository.
type Program struct {
	Module  string // folder; "": that of the repository
	Package string
	Test    bool
}

// Build builds a program of a release into a file.
func (r Release) Build(ctx context.Context, repository string, p Program, file string) error {
	switch r {
	case Before:
		return p.buildBefore(ctx, repository, file)
	case After:
		return p.buildChanged(ctx, repository, file, later()...)
	}
	return fmt.Errorf("release %q: want %s or %s", r, Before, After)
}

// buildBefore builds the release before this one from the repository, once a machine. A clone without history has only this
// release: then it is this one that reads records as strictly as the one before.
func (p Program) buildBefore(ctx context.Context, repository, file string) error {
	commit, err := lastBefore(ctx, repository)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stands for the release before this one: this one with strict decoding:", err)
		return p.buildChanged(ctx, repository, file, change{"internal/records/encoding.go", `return d, unknown, briefly\(d\.validate\(\)\)`,
			`if len(unknown) > 0 { return d, nil, &UnknownFieldsError{Fields: unknown} }; $0`})
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	kept := filepath.Join(cache, "liqonet-tests", fmt.Sprintf("%s-%s-%s", filepath.Base(p.Package), commit, runtime.Version()))
	if _, err := os.Stat(kept); err != nil {
		if err := p.keep(ctx, repository, commit, kept); err != nil {
			return err
		}
	}
	return run(ctx, "", "cp", kept, file)
}

// keep builds the program from a commit into a file for all who need it, of whom there may be several at once.
func (p Program) keep(ctx context.Context, repository, commit, kept string) error {
	tree, err := os.MkdirTemp("", "liqonet-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tree) }()
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return err
	}
	archive, built := filepath.Join(tree, "tree.tar"), fmt.Sprintf("%s.%d", kept, os.Getpid())
	for _, step := range []func() error{
		func() error {
			return run(ctx, repository, "git", "-c", "safe.directory=*", "archive", "--output", archive, commit)
		},
		func() error { return run(ctx, tree, "tar", "-xf", archive) },
		func() error { return p.build(ctx, tree, built) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return os.Rename(built, kept)
}

// lastBefore is the last commit of the release before this one.
func lastBefore(ctx context.Context, repository string) (string, error) {
	git := exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "log", "--diff-filter=A", "--format=%P", "-1", "--", firstOfThis)
	git.Dir = repository
	parents, err := git.Output()
	commit := strings.TrimSpace(string(parents))
	if err != nil || commit == "" {
		return "", errors.Join(errors.New("the clone has no history"), err)
	}
	return commit, nil
}

// later changes this release to one to come: its records have fields that this release does not know, in every object, and its
// echoes have a flag and bytes of which it knows nothing.
func later() []change {
	const encoding = "internal/records/encoding.go"
	return []change{
		{encoding, `yaml\.Marshal\(d\)`, `yaml.Marshal(withLater(d))`},
		{encoding, `json\.Marshal\(d\)`, `json.Marshal(withLater(d))`},
		{encoding, `unknown = append\(unknown, field\.FieldPath\(\)\)`, `if !strings.HasSuffix(field.FieldPath(), "later") { $0 }`},
		{"internal/records/later.go", "", laterFields},
		{"netops/echo/message.go", `PutUint16\(fixed\[6:\], (.*)\)\n`, "PutUint16(fixed[6:], 1<<15|$1)\n"},
		{"netops/echo/message.go", `var zeros \[256\]byte`, "var zeros = [256]byte{1, 2, 3, 4, 5, 6, 7, 8}"},
	}
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

// buildChanged builds from the tree with changes, which the tree does not see.
func (p Program) buildChanged(ctx context.Context, repository, file string, changes ...change) error {
	texts := map[string]string{}
	for _, c := range changes {
		path := filepath.Join(repository, c.file)
		if c.match == "" {
			texts[path] = c.replacement
			continue
		}
		if _, changed := texts[path]; !changed {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			texts[path] = string(text)
		}
		match := regexp.MustCompile(c.match)
		if n := len(match.FindAllString(texts[path], -1)); n != 1 {
			return fmt.Errorf("%s has %d times %q, and is to be changed there for another release: want once", c.file, n, c.match)
		}
		texts[path] = match.ReplaceAllString(texts[path], c.replacement)
	}
	dir, err := os.MkdirTemp("", "liqonet-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range texts {
		overlay.Replace[path] = filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(overlay.Replace[path], []byte(text), 0o600); err != nil {
			return err
		}
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		return err
	}
	return p.build(ctx, repository, file, "-overlay", list)
}

// build builds the program from a tree. Tests that run meanwhile measure time.
func (p Program) build(ctx context.Context, tree, file string, flags ...string) error {
	args := []string{"-n", "19", "go", "build", "-trimpath"}
	if p.Test {
		args = []string{"-n", "19", "go", "test", "-c"}
	}
	args = append(append(args, "-o", file), flags...)
	return run(ctx, filepath.Join(tree, p.Module), "nice", append(args, p.Package)...)
}

func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
