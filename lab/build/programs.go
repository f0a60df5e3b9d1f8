package build

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"liqonet.io/liqonet/lab/progress"
)

// programSet is built and cached as a unit.
type programSet struct {
	name    string
	outputs []output
	// release, if not "", is the release that replaces the one in go.mod: see earlier.go.
	release string
	// finish adds files made from the programs in dir. source is the folder of the lab's module.
	finish func(ctx context.Context, source, dir string) error
}

// output is a list of packages of one module whose programs go to one folder.
type output struct {
	module   string // folder below the lab's
	folder   string // below the set's; "" is the set's own
	packages []string
	// version gives the linker flags that put the version of a module into the programs.
	version func(ctx context.Context, module string) ([]string, error)
	tags    string
	cgo     bool // some package has C; the programs are static nevertheless
}

const (
	containerdPackages = "github.com/containerd/containerd/v2/cmd/"
	pluginPackages     = "github.com/containernetworking/plugins/plugins/"
)

// programSets are needed by every lab. The slowest is first.
var programSets = []programSet{
	{
		name:    "kube",
		outputs: []output{{module: "kube", packages: []string{".", "./kubectl"}, version: kubernetesVersion}},
	},
	{
		name: "containerd",
		outputs: []output{
			{module: "containerd", packages: []string{
				containerdPackages + "containerd",
				containerdPackages + "containerd-shim-runc-v2",
				containerdPackages + "ctr",
			}},
			{module: "containerd", folder: "cni", packages: []string{
				pluginPackages + "ipam/host-local",
				pluginPackages + "main/bridge",
				pluginPackages + "main/loopback",
				pluginPackages + "main/ptp",
				pluginPackages + "meta/portmap",
			}},
		},
	},
	{
		name:    "lab",
		outputs: []output{{module: ".", packages: []string{"./cmd/lab", "./cmd/workload"}}},
		finish:  func(_ context.Context, _, dir string) error { return writeWorkloadImage(dir) },
	},
}

// ensure returns the folder of the set's programs.
func (b builder) ensure(ctx context.Context, s programSet) (string, error) {
	key, err := b.key(ctx, s)
	if err != nil {
		return "", err
	}
	return b.fill(s.name+"-"+key, func(dir string) error {
		return b.report.Step("build "+s.name, func(note *progress.Note) error {
			return s.build(ctx, b.source, dir, note)
		})
	})
}

// key identifies the versions of all inputs of the set.
func (b builder) key(ctx context.Context, s programSet) (string, error) {
	var modules, hashes []string
	for _, o := range s.outputs {
		if slices.Contains(modules, o.module) {
			continue
		}
		modules = append(modules, o.module)
		module := filepath.Join(b.source, o.module)
		compiler, err := runGo(ctx, module, "env", "GOVERSION", "GOOS", "GOARCH")
		if err != nil {
			return "", err
		}
		hash, err := sourceHash(module, compiler)
		if err != nil {
			return "", err
		}
		hashes = append(hashes, hash)
	}
	if s.release != "" {
		hashes = append(hashes, s.release)
	}
	if len(hashes) == 1 {
		return hashes[0], nil
	}
	return fmt.Sprintf("%.12x", sha256.Sum256([]byte(strings.Join(hashes, " ")))), nil
}

func (s programSet) build(ctx context.Context, source, dir string, note *progress.Note) error {
	if s.release != "" {
		other := filepath.Join(dir, built("source"))
		if err := s.copyModules(source, other); err != nil {
			return err
		}
		source = other
	}
	compiled := 0
	for _, o := range s.outputs {
		err := o.build(ctx, source, dir, func() {
			compiled++
			note.Set(fmt.Sprintf("%d packages compiled", compiled))
		})
		if err != nil {
			return err
		}
	}
	if s.finish == nil {
		return nil
	}
	return s.finish(ctx, source, dir)
}

// build compiles the packages and calls each for every compiled package.
func (o output) build(ctx context.Context, source, dir string, each func()) error {
	module, folder := filepath.Join(source, o.module), filepath.Join(dir, o.folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	link := []string{"-s", "-w"}
	if o.version != nil {
		version, err := o.version(ctx, module)
		if err != nil {
			return err
		}
		link = append(link, version...)
	}
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-tags", o.tags}
	cmd := goCommand(ctx, module)
	if o.cgo {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
		link = append(link, "-extldflags=-static")
	}
	args = append(args, "-ldflags", strings.Join(link, " "), "-o", folder+"/")
	cmd.Args = append(cmd.Args, append(args, o.packages...)...)
	return compile(cmd, each)
}

// errorLines is how much of a compiler's output an error repeats.
const errorLines = 20

// compile runs go build -v and calls each for every package that it names.
func compile(cmd *exec.Cmd, each func()) error {
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var last []string
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		each()
		last = append(last, lines.Text())
		last = last[max(0, len(last)-errorLines):]
	}
	if err := lines.Err(); err != nil {
		_, _ = io.Copy(io.Discard, output) // otherwise go blocks on it
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", cmd.Dir, err, strings.Join(last, "\n"))
	}
	return nil
}

// moduleVersion returns the version of a dependency of the module in a folder.
func moduleVersion(ctx context.Context, folder, module string) (string, error) {
	return runGo(ctx, folder, "list", "-m", "-f", "{{.Version}}", module)
}

// kubernetesVersion makes the programs report their release. Without it a node reports v0.0.0.
func kubernetesVersion(ctx context.Context, module string) ([]string, error) {
	version, err := moduleVersion(ctx, module, "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("version %q of k8s.io/kubernetes: want vX.Y.Z", version)
	}
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, v := range [][2]string{
			{"gitVersion", version}, {"gitMajor", parts[0]}, {"gitMinor", parts[1]}, {"gitTreeState", "clean"},
		} {
			flags = append(flags, "-X", fmt.Sprintf("%s.%s=%s", pkg, v[0], v[1]))
		}
	}
	return flags, nil
}

// runGo returns the output of a go command, without the last newline.
func runGo(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := goCommand(ctx, dir, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w: %s", strings.Join(args, " "), dir, err, bytes.TrimSpace(said.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}

func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.Clip(os.Environ()), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	return cmd
}
