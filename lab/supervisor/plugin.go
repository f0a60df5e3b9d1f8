package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"liqonet.io/liqonet/lab/plugin"
)

// installPlugin gives a cluster the objects of its network plugin. Nodes are Ready when its pods run.
func (s *Supervisor) installPlugin(ctx context.Context, c *cluster) error {
	version, err := c.api.Version(ctx)
	if err != nil {
		return err
	}
	manifests, err := plugin.Manifests(ctx, plugin.Target{Cluster: c.Cluster, Kubernetes: version, Tools: s.tools})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.tools, "kube"), "kubectl",
		"--kubeconfig="+s.paths.Kubeconfig(), "--context="+c.Name(), "--cache-dir="+filepath.Join(s.paths.Data(), "kubectl"), "apply", "-f", "-")
	cmd.Stdin = bytes.NewReader(manifests)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apply manifests: %w: %s", err, bytes.TrimSpace(said))
	}
	s.journal.add("cluster %s: %s installed", c.Name(), c.NetworkPlugin)
	return nil
}
