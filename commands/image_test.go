package commands

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/testbed/require"
)

func TestImagePush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	// The first bytes of an ELF file for amd64: 64-bit, little endian, executable, no segments.
	program := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 57)...)
	program[16], program[18], program[20], program[52], program[58] = 2, 62, 1, 64, 64
	file := filepath.Join(t.TempDir(), "liqoctl")
	require.NoError(t, os.WriteFile(file, program, 0o600))
	var out, stderr strings.Builder
	ref := strings.TrimPrefix(server.URL, "http://") + "/net:1"
	env := &cli.Env{Out: &out, Err: &stderr}
	if code := Run(t.Context(), env, []string{"image", "push", ref, "--binary", file}); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if !regexp.MustCompile(`^` + regexp.QuoteMeta(ref) + `@sha256:[0-9a-f]{64}\n$`).MatchString(out.String()) {
		t.Errorf("stdout %q", out.String())
	}
}
