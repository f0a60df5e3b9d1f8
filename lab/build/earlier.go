package build

import (
	_ "embed"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Earlier releases of network plugins, from which they are upgraded: the lines of go.sum for a module in its earlier
// release, and for modules that only this release requires. All else is as for the current release.
var (
	//go:embed earlier/flannel.sum
	earlierFlannel string
	//go:embed earlier/cilium.sum
	earlierCilium string
)

// of returns the set with its modules in the release that these lines of go.sum have.
func (s programSet) of(release string) programSet {
	s.release = release
	return s
}

// copyModules copies the modules of the set, with the other release in their go.mod and go.sum.
func (s programSet) copyModules(source, target string) error {
	copied := map[string]bool{}
	for _, o := range s.outputs {
		if copied[o.module] {
			continue
		}
		copied[o.module] = true
		folder := filepath.Join(target, o.module)
		if err := os.CopyFS(folder, os.DirFS(filepath.Join(source, o.module))); err != nil {
			return err
		}
		if err := requireRelease(folder, s.release); err != nil {
			return err
		}
	}
	return nil
}

// requireRelease makes a module require the versions in these lines of go.sum. If it does not require the module in
// the first line yet, nothing changes.
func requireRelease(folder, sums string) error {
	file := filepath.Join(folder, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSpace(sums), "\n") {
		module, rest, _ := strings.Cut(line, " ")
		version, _, _ := strings.Cut(rest, " ")
		if strings.HasSuffix(version, "/go.mod") {
			continue
		}
		required := regexp.MustCompile(`(?m)^(\s*` + regexp.QuoteMeta(module) + `) v\S+`)
		switch {
		case required.Match(text):
			text = required.ReplaceAll(text, []byte("${1} "+version))
		case i == 0:
			return nil
		default:
			text = append(text, "\nrequire "+module+" "+version+" // indirect\n"...)
		}
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	file = filepath.Join(folder, "go.sum")
	if text, err = os.ReadFile(file); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, sums...), 0o644)
}
