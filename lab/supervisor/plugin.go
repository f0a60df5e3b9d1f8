package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"liqonet.io/liqonet/lab/plugin"
	"liqonet.io/liqonet/lab/spec"
)

// installPlugin gives a cluster the objects of its network plugin. Nodes are Ready when its pods run.
func (s *Supervisor) installPlugin(ctx context.Context, c *cluster, declared spec.Cluster) error {
	version, err := c.api.Version(ctx)
	if err != nil {
		return err
	}
	manifests, err := plugin.Manifests(ctx, plugin.Target{Cluster: declared, Kubernetes: version, Tools: s.tools})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.tools, "kubectl"), //nolint:gosec // no shell
		"--kubeconfig="+s.paths.Kubeconfig(), "--context="+c.Name(), "--cache-dir="+filepath.Join(s.paths.Data(), "kubectl"), "apply", "-f", "-")
	cmd.Stdin = bytes.NewReader(manifests)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apply manifests: %w: %s", err, bytes.TrimSpace(said))
	}
	return nil
}

// upgradePlugin replaces an earlier release of a cluster's network plugin by the current one. The plugin's controllers
// replace its pods.
func (s *Supervisor) upgradePlugin(ctx context.Context, c *cluster) error {
	declared := c.Cluster
	declared.NetworkPlugin = c.NetworkPlugin.Current()
	if declared.NetworkPlugin == c.NetworkPlugin {
		return fmt.Errorf("upgrade %s of cluster %s: it is not an earlier release", c.NetworkPlugin, c.Name())
	}
	image, err := os.Open(filepath.Join(s.tools, plugin.Folder(declared.NetworkPlugin), plugin.Archive))
	if err != nil {
		return err
	}
	defer image.Close()
	if err := s.load(ctx, image); err != nil {
		return err
	}
	return s.installPlugin(ctx, c, declared)
}
