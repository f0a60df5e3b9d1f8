// Package build builds the programs of a lab from Go modules, once, and keeps them in a cache outside the source
// tree: Kubernetes takes minutes to compile.
package build

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/progress"
	"liqonet.io/liqonet/lab/spec"
)

// cacheVariable names another cache than the user's.
const cacheVariable = "LIQONET_LAB_CACHE"

// unfinished is the prefix of folders that a build fills; a complete one is renamed.
const unfinished = ".unfinished-"

// Ensure returns the folder of the lab's programs, and builds those that the cache lacks:
//
//	kube                                  every program of Kubernetes that runs until it is stopped, and etcd
//	kubectl
//	containerd ctr containerd-shim-…      the container runtime
//	cni/                                  network plugins
//	lab workload workload.tar             this module's own
//	plugins/NAME/                         of each of the network plugins, see package plugin
func Ensure(ctx context.Context, report *progress.Reporter, plugins ...spec.NetworkPlugin) (string, error) {
	source, err := findSource()
	if err != nil {
		return "", err
	}
	cache, unlock, err := openCache()
	if err != nil {
		return "", err
	}
	defer unlock()
	b := builder{source: source, cache: cache, report: report}
	var sets []string
	needed := slices.Clone(programSets)
	for _, p := range plugins {
		needed = append(needed, pluginSets[p])
	}
	for _, s := range needed {
		dir, err := b.ensure(ctx, s)
		if err != nil {
			return "", fmt.Errorf("build %s: %w", s.name, err)
		}
		sets = append(sets, dir)
	}
	return b.join(sets)
}

// openCache takes the lock of the cache, and removes what killed builds left.
func openCache() (cache string, unlock func(), err error) {
	if cache, err = CacheDir(); err != nil {
		return "", nil, err
	}
	if unlock, err = Lock(filepath.Join(cache, "lock")); err != nil {
		return "", nil, err
	}
	if err := removeUnfinished(cache); err != nil {
		unlock()
		return "", nil, err
	}
	return cache, unlock, nil
}

// CacheDir returns the folder in which builds are kept. It need not exist.
func CacheDir() (string, error) {
	if dir := os.Getenv(cacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache, which %s can name: %w", cacheVariable, err)
	}
	return filepath.Join(dir, "liqonet-lab"), nil
}

// Lock takes the lock of a file and waits while another process holds it. It creates the file and its folder.
func Lock(file string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // which releases the lock
}

// removeUnfinished removes the folders that killed builds left.
func removeUnfinished(cache string) error {
	left, err := filepath.Glob(filepath.Join(cache, unfinished+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// builder builds from one source tree into one cache.
type builder struct {
	source string // folder of the lab's module
	cache  string
	report *progress.Reporter
}

// fill creates the folder name of the cache by calling f, unless it exists.
func (b builder) fill(name string, f func(dir string) error) (string, error) {
	dir := filepath.Join(b.cache, name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	half, err := os.MkdirTemp(b.cache, unfinished)
	if err != nil {
		return "", err
	}
	if err := f(half); err != nil {
		return "", errors.Join(err, os.RemoveAll(half))
	}
	if err := os.Chmod(half, 0o755); err != nil {
		return "", err
	}
	return dir, os.Rename(half, dir)
}

// join returns one folder with the files of all sets.
func (b builder) join(sets []string) (string, error) {
	key := sha256.New()
	for _, dir := range sets {
		fmt.Fprintln(key, filepath.Base(dir))
	}
	return b.fill(fmt.Sprintf("all-%.12x", key.Sum(nil)), func(all string) error {
		for _, dir := range sets {
			if err := linkFiles(dir, all); err != nil {
				return err
			}
		}
		return nil
	})
}

// linkFiles makes hard links in to of every file below from.
func linkFiles(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return os.Link(path, filepath.Join(to, rel)) //nolint:gosec // both folders are this program's own
	})
}
