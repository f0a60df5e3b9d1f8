package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"liqonet.io/liqonet/lab/build"
)

// stamp is a file that exists if tests have passed. Its name is the hash of their inputs: the command, the variables
// that select drivers, the test binaries, files in testdata, and the files of a guest. go test itself caches no results
// of tests that another program runs.
type stamp string

// newStamp returns the stamp of a "go test" of packages, which are the arguments before the first flag. made are the
// files from which guests are made, this program first.
func newStamp(ctx context.Context, goTest *exec.Cmd, args []string, made ...string) (stamp, error) {
	packages := args
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }); i >= 0 {
		packages = args[:i]
	}
	sum := sha256.New()
	for _, e := range slices.Sorted(slices.Values(goTest.Env)) {
		if strings.HasPrefix(e, "LIQONET_") {
			fmt.Fprintln(sum, e)
		}
	}
	binaries, err := os.MkdirTemp("", "liqonet-guesttest-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(binaries) }()
	build := []string{"test", "-c", "-trimpath", "-buildvcs=false", "-o", binaries + "/"}
	for _, arg := range goTest.Args[1:] {
		fmt.Fprintf(sum, "%q ", strings.ReplaceAll(arg, made[0], "lab"))
		if strings.HasPrefix(arg, "-tags=") {
			build = append(build, arg)
		}
	}
	if _, err := goOutput(ctx, goTest.Env, append(build, packages...)...); err != nil {
		return "", err
	}
	folders, err := goOutput(ctx, goTest.Env, append([]string{"list", "-f", "{{.Dir}}/testdata"}, packages...)...)
	if err != nil {
		return "", err
	}
	for _, place := range slices.Concat(strings.Fields(folders), []string{binaries}, made) {
		if err := addFiles(sum, place); err != nil {
			return "", err
		}
	}
	return stampOf(sum.Sum(nil))
}

// stampOf returns the stamp with a hash, in the lab's build cache.
func stampOf(hash []byte) (stamp, error) {
	cache, err := build.CacheDir()
	return stamp(filepath.Join(cache, "passed", fmt.Sprintf("%x", hash[:16]))), err
}

// addFiles writes the names and contents of all files below a path, which may be absent.
func addFiles(to io.Writer, place string) error {
	err := filepath.WalkDir(place, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // files of the user who runs this
		fmt.Fprintf(to, "%s %x\n", strings.TrimPrefix(path, place), sha256.Sum256(content))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func goOutput(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var said bytes.Buffer
	cmd.Env, cmd.Stderr = env, &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, said.Bytes())
	}
	return string(out), nil
}

func (s stamp) is() bool {
	_, err := os.Stat(string(s))
	return err == nil
}

func (s stamp) set() error {
	if err := os.MkdirAll(filepath.Dir(string(s)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(string(s), nil, 0o600)
}
