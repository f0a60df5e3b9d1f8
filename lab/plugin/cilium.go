package plugin

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/lab/cgroup"
	"liqonet.io/liqonet/lab/node"
	"liqonet.io/liqonet/lab/spec"
)

//go:embed cilium.yaml
var neededValues []byte

// ciliumNamespace is where Cilium's chart is installed.
const ciliumNamespace = "kube-system"

// cilium renders Cilium's own chart for a cluster.
func cilium(ctx context.Context, folder string, t Target) ([]object, error) {
	values, err := ciliumValues(t.Cluster)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(folder, Renderer), filepath.Join(folder, Chart), "cilium", ciliumNamespace, t.Kubernetes)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(values), &said
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("render chart: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return parse(text)
}

// ciliumValues are the chart's values for a cluster: those that the lab needs, overridden by those of the declaration.
func ciliumValues(c spec.Cluster) ([]byte, error) {
	var values map[string]any
	if err := yaml.Unmarshal(neededValues, &values); err != nil {
		return nil, fmt.Errorf("parse values that the lab needs: %w", err)
	}
	groups, err := cgroup.Hierarchies()
	if err != nil {
		return nil, err
	}
	root, err := node.CgroupV2(groups)
	if err != nil {
		return nil, err
	}
	server := netip.AddrPortFrom(c.ControlPlaneAddress(), spec.APIPort)
	merge(values, map[string]any{
		"cgroup":               map[string]any{"hostRoot": root},
		"k8sServiceHost":       server.Addr().String(),
		"k8sServicePort":       server.Port(),
		"kubeProxyReplacement": c.KubeProxy == spec.ProxyNone,
	})
	merge(values, c.CiliumValues)
	return yaml.Marshal(values)
}
