package build

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"liqonet.io/liqonet/lab/progress"
)

// The ingress controller Traefik. The module proxy lacks the source of its release 3.7: of modules for DNS providers.
const (
	traefikModule  = "github.com/traefik/traefik/v3"
	traefikVersion = "v3.6.12"
)

// Traefik returns the path of Traefik's program, and builds it if the cache lacks it: from the source of its module,
// with the versions and replacements of its own go.mod.
func Traefik(ctx context.Context, report *progress.Reporter) (string, error) {
	cache, unlock, err := openCache()
	if err != nil {
		return "", err
	}
	defer unlock()
	compiler, err := runGo(ctx, cache, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	b := builder{cache: cache, report: report}
	name := strings.Join(append([]string{"traefik", traefikVersion}, strings.Fields(compiler)...), "-")
	dir, err := b.fill(name, func(dir string) error {
		return report.Step("build traefik", func(note *progress.Note) error { return buildTraefik(ctx, dir, note) })
	})
	if err != nil {
		return "", fmt.Errorf("build traefik: %w", err)
	}
	return filepath.Join(dir, "traefik"), nil
}

// buildTraefik builds a copy of the module, which has no pages of the dashboard. The program embeds them.
func buildTraefik(ctx context.Context, dir string, note *progress.Note) error {
	out, err := runGo(ctx, dir, "mod", "download", "-json", traefikModule+"@"+traefikVersion)
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(out), &module); err != nil {
		return err
	}
	source := filepath.Join(dir, built("source"))
	if err := os.CopyFS(source, os.DirFS(module.Dir)); err != nil {
		return err
	}
	pages := filepath.Join(source, "webui/static")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(pages, "index.html"), nil, 0o644); err != nil {
		return err
	}
	if err := (programSet{outputs: []output{{packages: []string{"./cmd/traefik"}}}}).build(ctx, source, dir, note); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, built("")))
}
