package build

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"liqonet.io/liqonet/lab/progress"
)

// programSet is what is built from one module.
type programSet struct {
	name    string
	module  string // folder below the lab's
	outputs []output
	// version gives the linker flags that put the version of a module into the programs.
	version func(ctx context.Context, module string) ([]string, error)
	// finish adds what is made from the programs.
	finish func(dir string) error
}

// output is packages whose programs go to one folder.
type output struct {
	folder   string // below the set's; "" is the set's own
	packages []string
}

const (
	containerdPackages = "github.com/containerd/containerd/v2/cmd/"
	pluginPackages     = "github.com/containernetworking/plugins/plugins/"
)

// programSets are all programs of a lab. The slowest is first: who waits should wait once.
var programSets = []programSet{
	{
		name:    "kube",
		module:  "kube",
		outputs: []output{{"", []string{"."}}},
		version: kubernetesVersion,
	},
	{
		name:   "containerd",
		module: "containerd",
		outputs: []output{
			{"", []string{
				containerdPackages + "containerd",
				containerdPackages + "containerd-shim-runc-v2",
				containerdPackages + "ctr",
			}},
			{"cni", []string{
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
		module:  ".",
		outputs: []output{{"", []string{"./cmd/lab", "./cmd/workload"}}},
		finish:  writeWorkloadImage,
	},
}

// ensure returns the folder of the set's programs.
func (b builder) ensure(ctx context.Context, s programSet) (string, error) {
	module := filepath.Join(b.source, s.module)
	compiler, err := runGo(ctx, module, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	key, err := sourceHash(module, compiler)
	if err != nil {
		return "", err
	}
	return b.fill(s.name+"-"+key, func(dir string) error {
		return b.report.Step("build "+s.name, func(note *progress.Note) error {
			return s.build(ctx, module, dir, note)
		})
	})
}

func (s programSet) build(ctx context.Context, module, dir string, note *progress.Note) error {
	link := []string{"-s", "-w"}
	if s.version != nil {
		version, err := s.version(ctx, module)
		if err != nil {
			return err
		}
		link = append(link, version...)
	}
	compiled := 0
	for _, o := range s.outputs {
		folder := filepath.Join(dir, o.folder)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(link, " "), "-o", folder + "/"}
		err := compile(ctx, module, append(args, o.packages...), func() {
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
	return s.finish(dir)
}

// errorLines is how much of a compiler's output an error repeats.
const errorLines = 20

// compile runs go build -v and calls each for every package that it names.
func compile(ctx context.Context, module string, args []string, each func()) error {
	cmd := goCommand(ctx, module, args...)
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
		_, _ = io.Copy(io.Discard, output) // or go would block on it
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", module, err, strings.Join(last, "\n"))
	}
	return nil
}

// kubernetesVersion makes the programs report the release they are: without, a node calls itself v0.0.0.
func kubernetesVersion(ctx context.Context, module string) ([]string, error) {
	version, err := runGo(ctx, module, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
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

// runGo returns what a go command prints, without the last newline.
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
