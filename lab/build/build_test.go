package build

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"liqonet.io/liqonet/lab/cluster"
	"liqonet.io/liqonet/lab/require"
)

// write makes files with content below dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

func TestSourceHash(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"go.mod": "module x\n", "main.go": "package main\n", "config/a.yaml": "a: 1\n"})
	hash := func() string {
		h, err := sourceHash(dir, "go1")
		require.NoError(t, err)
		return h
	}
	base := hash()
	for _, tc := range []struct {
		file, content string
		changes       bool
	}{
		{"main_test.go", "package main\n", false},
		{"README.md", "text", false},
		{"e2e/main.go", "package e2e\n", false},
		{"nested/go.mod", "module y\n", false},
		{"nested/main.go", "package main\n", false},
		{"nested/absent/x.go", "package main\n", false},
		{"absent/x/go.mod", "module z\n", true},
		{"absent/x/x.go", "package x\n", true},
		{"config/a.yaml", "a: 2\n", true},
		{"new.go", "package main\n", true},
	} {
		write(t, dir, map[string]string{tc.file: tc.content})
		if now := hash(); (now != base) != tc.changes {
			t.Errorf("after writing %s: hash changed is %v, want %v", tc.file, now != base, tc.changes)
		} else {
			base = now
		}
	}
	if other, err := sourceHash(dir, "go2"); err != nil || other == base {
		t.Errorf("another compiler: hash %s as before, error %v", other, err)
	}
}

func TestFillIsAllOrNothing(t *testing.T) {
	b := builder{cache: t.TempDir()}
	broken := errors.New("broken")
	_, err := b.fill("x", func(dir string) error {
		write(t, dir, map[string]string{"half": ""})
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if left, err := os.ReadDir(b.cache); err != nil || len(left) > 0 {
		t.Errorf("a build that did not succeed left %v, error %v", left, err)
	}
	calls := 0
	for range 2 {
		dir, err := b.fill("x", func(dir string) error {
			calls++
			write(t, dir, map[string]string{"whole": ""})
			return nil
		})
		require.NoError(t, err)
		if _, err := os.Stat(filepath.Join(dir, "whole")); err != nil {
			t.Error(err)
		}
	}
	if calls != 1 {
		t.Errorf("built %d times, want once", calls)
	}
}

func TestUnfinishedBuildsAreRemoved(t *testing.T) {
	cache := t.TempDir()
	write(t, cache, map[string]string{unfinished + "123/kube": "", "kube-1/kube": ""})
	require.NoError(t, removeUnfinished(cache))
	entries, err := os.ReadDir(cache)
	if err != nil || len(entries) != 1 || entries[0].Name() != "kube-1" {
		t.Errorf("left %v, error %v, want kube-1", entries, err)
	}
}

func TestFindSource(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"go.mod":          "module liqonet.io/liqonet\n",
		"lab/go.mod":      "module liqonet.io/liqonet/lab\n",
		"lab/kube/go.mod": "module liqonet.io/liqonet/lab/kube\n",
	})
	for _, dir := range []string{".", "lab", "lab/kube"} {
		t.Run(dir, func(t *testing.T) {
			t.Chdir(filepath.Join(root, dir))
			source, err := findSource()
			if err != nil || filepath.Base(source) != "lab" {
				t.Errorf("source %s, error %v", source, err)
			}
		})
	}
	t.Chdir(t.TempDir())
	if source, err := findSource(); err == nil {
		t.Errorf("outside: found %s", source)
	}
}

func TestWorkloadImage(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"workload": "program"})
	require.NoError(t, writeWorkloadImage(dir))
	ref, err := name.NewTag(cluster.WorkloadImage)
	require.NoError(t, err)
	image, err := tarball.ImageFromPath(filepath.Join(dir, cluster.WorkloadArchive), &ref)
	require.NoError(t, err)
	files := tar.NewReader(mutate.Extract(image))
	var content bytes.Buffer
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if h.Name == workloadPath {
			if _, err := io.Copy(&content, files); err != nil {
				t.Fatal(err)
			}
			if h.Mode != 0o755 {
				t.Errorf("mode of %s is %o", h.Name, h.Mode)
			}
		}
	}
	if content.String() != "program" {
		t.Errorf("program in the image is %q", content.String())
	}
}

// TestEarlierRelease checks that the set of an earlier release is built of a copy of the modules, with that release.
func TestEarlierRelease(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	write(t, source, map[string]string{
		"p/go.mod":          "module x\n\nrequire (\n\texample.org/p v1.2.0 // indirect\n\texample.org/p/part v1.2.0\n)\n",
		"p/go.sum":          "example.org/p v1.2.0 h1:a=\n",
		"p/absent/y/go.mod": "module y\n",
		"q/go.mod":          "module q\n",
		"q/go.sum":          "",
	})
	const sums = "example.org/p v1.1.9 h1:b=\nexample.org/p v1.1.9/go.mod h1:c=\nexample.org/old v1.0.0 h1:d=\n"
	s := programSet{outputs: []output{{module: "p"}, {module: "q"}, {module: "p"}}}.of(sums)
	require.NoError(t, s.copyModules(source, target))
	for file, want := range map[string]string{
		"p/go.mod": "module x\n\nrequire (\n\texample.org/p v1.1.9 // indirect\n\texample.org/p/part v1.2.0\n)\n" +
			"\nrequire example.org/old v1.0.0 // indirect\n",
		"p/go.sum":          "example.org/p v1.2.0 h1:a=\n" + sums,
		"p/absent/y/go.mod": "module y\n",
		"q/go.mod":          "module q\n",
	} {
		if got, err := os.ReadFile(filepath.Join(target, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", file, got, err, want)
		}
	}
}
