package build

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// modulePath is the module that this package is part of.
const modulePath = "liqonet.io/liqonet/lab"

// findSource returns the folder of the lab's module: the working directory is in it, or in the repository
// around it.
func findSource() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		for _, candidate := range []string{dir, filepath.Join(dir, "lab")} {
			text, err := os.ReadFile(filepath.Join(candidate, "go.mod"))
			if err == nil && bytes.HasPrefix(text, []byte("module "+modulePath+"\n")) {
				return candidate, nil
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the lab builds its programs from source: run it inside its repository")
		}
		dir = parent
	}
}

// sourceHash hashes the source files of a module, and extra, which is any other input of the build. Of nested
// modules, only the substitutes of absent ones are part of it.
func sourceHash(module string, extra ...string) (string, error) {
	var files []string
	err := filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(module, path)
		}
		if !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	slices.Sort(files)
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", extra)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		rel, err := filepath.Rel(module, file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %x\n", rel, sha256.Sum256(text))
	}
	return fmt.Sprintf("%.12x", h.Sum(nil)), nil
}

// absentFolder has replacements for modules that the module proxy lacks, in a module.
const absentFolder = "absent"

// skipFolder is fs.SkipDir for folders that are not the module's.
func skipFolder(module, dir string) error {
	if dir == module {
		return nil
	}
	base := filepath.Base(dir)
	if strings.HasPrefix(base, ".") || base == "testdata" || base == "e2e" {
		return fs.SkipDir
	}
	standsIn := strings.HasPrefix(dir, filepath.Join(module, absentFolder)+string(filepath.Separator))
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && !standsIn {
		return fs.SkipDir
	}
	return nil
}
