package guest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"liqonet.io/liqonet/lab/build"
	"liqonet.io/liqonet/lab/progress"
)

// sourcePackage is Debian's package of the kernel's source.
const sourcePackage = "linux-source-6.12"

// registers is the place in the source of the size of a thread's floating-point and vector registers, in bytes: too few
// for processors with AMX, which have 11,008. There the host refuses to set them, and a guest's init dies with
// "ptrace set fp regs failed, errno = 14" (EFAULT: xstateregs_set in arch/x86/kernel/fpu/regset.c takes all or
// nothing; of what is too much it takes what there is).
const (
	registersFile = "arch/x86/um/user-offsets.c"
	registersFew  = "DEFINE_LONGS(HOST_FP_SIZE, 2696)"
	registersAll  = "DEFINE_LONGS(HOST_FP_SIZE, 12288)"
)

// buildPackages are the packages that the build needs, besides the source.
var buildPackages = []string{"bc", "bison", "flex", "gcc", "libc6-dev", "make", "xz-utils"}

// sourceVersion is the version of the source that is installed, or "".
func sourceVersion(ctx context.Context) (string, error) {
	versions, err := installed(ctx, sourcePackage)
	return versions[sourcePackage], err
}

// installed returns the versions of those packages that are installed.
func installed(ctx context.Context, names ...string) (map[string]string, error) {
	query, err := build.FindProgram("dpkg-query")
	if err != nil {
		return nil, fmt.Errorf("the guest's kernel is built from Debian's source: %w", err)
	}
	args := append([]string{"-W", "-f", "${Package} ${db:Status-Status} ${Version}\n"}, names...)
	out, err := exec.CommandContext(ctx, query, args...).Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: some are unknown
		return nil, fmt.Errorf("dpkg-query: %w", err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 && f[1] == "installed" {
			versions[f[0]] = f[2]
		}
	}
	return versions, nil
}

// installSource installs the source and the packages that build it, if missing.
func installSource(ctx context.Context, report *progress.Reporter) error {
	want := append([]string{sourcePackage}, buildPackages...)
	have, err := installed(ctx, want...)
	if err != nil {
		return err
	}
	var missing []string
	for _, name := range want {
		if have[name] == "" {
			missing = append(missing, name)
		}
	}
	return build.InstallPackages(ctx, report, missing)
}

// kernelBuild is a build of the kernel in a folder that is kept until the build is complete.
type kernelBuild struct {
	dir    string
	report *progress.Reporter
}

func (b kernelBuild) source() string  { return filepath.Join(b.dir, "source") }
func (b kernelBuild) objects() string { return filepath.Join(b.dir, "objects") }

// run builds the kernel and puts it into a folder that appears when it is complete.
func (b kernelBuild) run(ctx context.Context, into string) error {
	if err := b.removeOthers(); err != nil {
		return err
	}
	if err := b.unpack(ctx); err != nil {
		return err
	}
	if err := b.configure(ctx); err != nil {
		return err
	}
	err := b.report.Step("build the guest's kernel", func(note *progress.Note) error {
		compiled := 0
		return b.make(ctx, func(line string) {
			if strings.HasPrefix(line, "  CC ") {
				compiled++
				note.Set(fmt.Sprintf("%d files compiled", compiled))
			}
		}, fmt.Sprintf("-j%d", runtime.NumCPU()), kernelProgram)
	})
	if err != nil {
		return err
	}
	done := filepath.Join(b.dir, "done")
	if err := os.MkdirAll(done, 0o755); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(b.objects(), kernelProgram), filepath.Join(done, kernelProgram)); err != nil {
		return err
	}
	if err := os.Rename(done, into); err != nil {
		return err
	}
	return os.RemoveAll(b.dir)
}

// removeOthers removes unfinished builds of other versions and configurations, of 2 GB each.
func (b kernelBuild) removeOthers() error {
	all, err := filepath.Glob(filepath.Join(filepath.Dir(b.dir), buildPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range all {
		if dir != b.dir {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// unpack unpacks the source, all of it or nothing.
func (b kernelBuild) unpack(ctx context.Context) error {
	if _, err := os.Stat(b.source()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	half := b.source() + ".half"
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	if err := os.MkdirAll(half, 0o755); err != nil {
		return err
	}
	return b.report.Step("unpack "+sourcePackage, func(*progress.Note) error {
		archive := filepath.Join("/usr/src", sourcePackage+".tar.xz")
		tar := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", half, "--strip-components=1")
		if out, err := tar.CombinedOutput(); err != nil {
			return fmt.Errorf("unpack %s: %w\n%s", archive, err, out)
		}
		if err := widenRegisters(filepath.Join(half, registersFile)); err != nil {
			return err
		}
		return os.Rename(half, b.source())
	})
}

// widenRegisters changes the source so that every processor's registers fit.
func widenRegisters(file string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !strings.Contains(string(source), registersFew) {
		return fmt.Errorf("%s: no %q, which guests on processors with AMX need changed", registersFile, registersFew)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(source), registersFew, registersAll, 1)), 0o644)
}

// configure writes the kernel's configuration.
func (b kernelBuild) configure(ctx context.Context) error {
	if err := os.MkdirAll(b.objects(), 0o755); err != nil {
		return err
	}
	wanted := filepath.Join(b.dir, "kernel.config")
	if err := os.WriteFile(wanted, []byte(kernelConfig), 0o644); err != nil {
		return err
	}
	if err := b.make(ctx, func(string) {}, "KCONFIG_ALLCONFIG="+wanted, "allnoconfig"); err != nil {
		return err
	}
	taken, err := os.ReadFile(filepath.Join(b.objects(), ".config"))
	if err != nil {
		return err
	}
	if missing := missingOptions(kernelConfig, string(taken)); len(missing) > 0 {
		return fmt.Errorf("configure: this source does not take %s", strings.Join(missing, ", "))
	}
	return nil
}

// errorLines is how much of make's output an error repeats.
const errorLines = 20

// make runs the kernel's makefile and calls each for every line that it writes.
func (b kernelBuild) make(ctx context.Context, each func(line string), args ...string) error {
	cmd := exec.CommandContext(ctx, "make", append([]string{"-C", b.source(), "ARCH=um", "O=" + b.objects()}, args...)...)
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	group, err := startGroup(cmd)
	if err != nil {
		return err
	}
	var last []string
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		each(lines.Text())
		last = append(last, lines.Text())
		last = last[max(0, len(last)-errorLines):]
	}
	if err := errors.Join(lines.Err(), group.wait()); err != nil {
		return errors.Join(fmt.Errorf("make %s: %w\n%s", args[len(args)-1], err, strings.Join(last, "\n")), context.Cause(ctx))
	}
	return nil
}
