package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
)

// root is the folder of the repository.
var root = filepath.Join("..", "..")

// programs are what tests run, each made by the first that needs it.
var programs struct {
	mu     sync.Mutex
	folder string
	made   map[string]error
}

// program returns the file of a program, which is made once for all tests: to link one takes seconds.
func program(t *testing.T, name string, build func(ctx context.Context, file string) error) string {
	t.Helper()
	p := &programs
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.folder == "" {
		folder, err := os.MkdirTemp("", "liqonet-e2e-") //nolint:usetesting // it outlives the test that comes first
		require.NoError(t, err)
		p.folder, p.made = folder, map[string]error{}
	}
	file := filepath.Join(p.folder, name)
	if _, ok := p.made[name]; !ok {
		p.made[name] = build(context.WithoutCancel(t.Context()), file) // it is for other tests, too
	}
	if err := p.made[name]; err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return file
}

// removePrograms removes what tests had made.
func removePrograms() error { return os.RemoveAll(programs.folder) }

// liqoctlProgram is the program under test, liqoctlImage the file of its image.
func liqoctlProgram(t *testing.T) string {
	t.Helper()
	return program(t, "liqoctl", func(ctx context.Context, file string) error {
		// As make build does.
		return goCommand(ctx, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "./cmd/liqoctl")
	})
}

// imageName is the name of the image on the nodes. No registry can serve it (RFC 2606).
const imageName = "liqonet.invalid/liqonet:e2e"

func liqoctlImage(t *testing.T) string {
	t.Helper()
	binary := liqoctlProgram(t)
	return program(t, "liqoctl.tar", func(ctx context.Context, file string) error {
		if out, err := exec.CommandContext(ctx, binary, "image", "save", "--tag", imageName, "-o", file).CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
}

// runLabTest runs a test of the root module that needs a lab, in the folder of its package, with some variables.
func runLabTest(ctx context.Context, t *testing.T, l *lab.Lab, pkg, name string, variables ...string) {
	t.Helper()
	binary := program(t, path.Base(pkg)+".test", func(ctx context.Context, file string) error {
		return goCommand(ctx, "test", "-c", "-ldflags=-s -w", "-tags", "lab", "-o", file, pkg)
	})
	short := fmt.Sprintf("-test.short=%t", testing.Short())
	verbose := fmt.Sprintf("-test.v=%t", testing.Verbose()) // else it prints of failed tests only
	cmd := exec.CommandContext(ctx, binary, verbose, short, "-test.parallel", "12", "-test.timeout", buildTimeout.String(), "-test.run", "^"+name+"$")
	cmd.Dir = filepath.Join(root, pkg)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(), "LIQOCTL="+liqoctlProgram(t)), variables...)
	out, err := cmd.CombinedOutput()
	t.Log(string(out))
	if err != nil {
		t.Errorf("%s: %v", name, err)
	} else if bytes.Contains(out, []byte("no tests to run")) {
		t.Errorf("%s did not run", name)
	}
}

func goCommand(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %v: %w\n%s", args, err, out)
	}
	return nil
}
