package guest

import (
	"context"
	"crypto/sha256"
	_ "embed" // kernel.config
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"liqonet.io/liqonet/lab/build"
	"liqonet.io/liqonet/lab/progress"
)

//go:embed kernel.config
var kernelConfig string

// kernelProgram is the name of the kernel, which is a program.
const kernelProgram = "linux"

// buildPrefix is that of folders in which a kernel is built.
const buildPrefix = "building-"

// EnsureKernel returns the guest's kernel, and builds it if the build cache lacks it: 20 minutes of processor time,
// once for each version of Debian's source and of the configuration. An interrupted build is continued.
func EnsureKernel(ctx context.Context, report *progress.Reporter) (string, error) {
	cache, err := build.CacheDir()
	if err != nil {
		return "", err
	}
	unlock, err := build.Lock(filepath.Join(cache, "guest-lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	version, err := sourceVersion(ctx)
	if err != nil {
		return "", err
	}
	if version == "" {
		// Without the source, no newer kernel can be built.
		if built, err := builtKernels(cache); err != nil || len(built) > 0 {
			return lastOf(built), err
		}
	}
	if err := installSource(ctx, report); err != nil {
		return "", err
	}
	if version, err = sourceVersion(ctx); err != nil {
		return "", err
	}
	kernel := filepath.Join(cache, kernelFolder(version), kernelProgram)
	if _, err := os.Stat(kernel); !errors.Is(err, fs.ErrNotExist) {
		return kernel, err
	}
	b := kernelBuild{dir: filepath.Join(cache, buildPrefix+kernelFolder(version)), report: report}
	if err := b.run(ctx, filepath.Dir(kernel)); err != nil {
		return "", fmt.Errorf("build the guest's kernel: %w", err)
	}
	return kernel, nil
}

// kernelFolder is the folder of the cache with the kernel of a version of the source.
func kernelFolder(version string) string {
	return fmt.Sprintf("guest-%s-%.6x", version, sha256.Sum256([]byte(kernelConfig+registersAll)))
}

// builtKernels are the kernels of this configuration that the cache has.
func builtKernels(cache string) ([]string, error) {
	return filepath.Glob(filepath.Join(cache, kernelFolder("*"), kernelProgram))
}

func lastOf(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return paths[len(paths)-1]
}

// missingOptions returns the lines of a desired configuration that the kernel's configuration lacks: misspelt, or
// without their dependencies.
func missingOptions(wanted, taken string) []string {
	has := map[string]bool{}
	for line := range strings.Lines(taken) {
		has[strings.TrimSpace(line)] = true
	}
	var missing []string
	for line := range strings.Lines(wanted) {
		line = strings.TrimSpace(line)
		name, value, isOption := strings.Cut(line, "=")
		switch {
		case !isOption || strings.HasPrefix(line, "#"):
		case value == "n":
			for _, set := range []string{"=y", "=m"} {
				if has[name+set] {
					missing = append(missing, line)
				}
			}
		case !has[line]:
			missing = append(missing, line)
		}
	}
	return missing
}
