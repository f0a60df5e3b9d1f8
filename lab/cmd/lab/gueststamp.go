package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"liqonet.io/liqonet/lab/build"
)

// stamp is a file that exists if a test binary has passed. Its name is the hash of all that decides this: the binary
// and its arguments, the variables that select drivers, files in testdata, the documentation, from which tests read
// examples and tables, and the files of a guest. go test itself caches no results of tests that another program runs.
type stamp string

// testFlag begins the flags of go test that a test binary gets.
const testFlag = "-test."

// isTest reports whether a command is that of a test binary, as go test runs it.
func isTest(argv []string) bool {
	return len(argv) > 1 && strings.HasPrefix(argv[1], testFlag)
}

// unlessPassed runs a test binary in the folder of its package, and keeps that it passed. If it is known to have passed
// and skipped is the name of a file, it does not run, and the folder is added to this file.
func unlessPassed(skipped string, argv []string, kernel string, run func() error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s, err := newStamp(argv, self, kernel)
	if err != nil {
		return err
	}
	if skipped == "" || !s.is() {
		if err := run(); err != nil {
			return err
		}
		return s.set()
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(skipped, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "passed before, and nothing has changed since: %s\n", dir)
	return errors.Join(err, f.Close())
}

// newStamp returns the stamp of a test binary in the folder of its package. made are the files from which guests are
// made.
func newStamp(argv []string, made ...string) (stamp, error) {
	sum := sha256.New()
	for _, e := range slices.Sorted(slices.Values(os.Environ())) {
		if strings.HasPrefix(e, "LIQONET_") && !strings.HasPrefix(e, "LIQONET_LAB_") {
			fmt.Fprintln(sum, e)
		}
	}
	for _, arg := range argv[1:] {
		if !strings.HasPrefix(arg, testFlag+"testlogfile=") { // a temporary one
			fmt.Fprintf(sum, "%q ", arg)
		}
	}
	docs, err := documentation()
	if err != nil {
		return "", err
	}
	for _, place := range append([]string{"testdata", docs, argv[0]}, made...) {
		if err := addFiles(sum, place); err != nil {
			return "", err
		}
	}
	cache, err := build.CacheDir()
	return stamp(filepath.Join(cache, "passed", fmt.Sprintf("%x", sum.Sum(nil)[:16]))), err
}

// documentation returns the folder docs of the nearest parent that has one, else a path that does not exist.
func documentation() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		docs := filepath.Join(dir, "docs")
		if st, err := os.Stat(docs); err == nil && st.IsDir() {
			return docs, nil
		}
	}
	return "docs", err
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
