// Package plugin has the manifests of real network plugins fit for a cluster of the lab: they come from the plugins'
// own modules, whose versions are in lab/flannel/go.mod, lab/flannelcni/go.mod and lab/cilium/go.mod; those of earlier
// releases are in lab/build/earlier.
package plugin

import (
	"context"
	"fmt"
	"path/filepath"

	"liqonet.io/liqonet/lab/spec"
)

// What the folder of a plugin holds.
const (
	Archive  = "image.tar"     // all of the plugin's programs in one image
	Manifest = "manifest.yaml" // flannel's
	Chart    = "chart"         // Cilium's
	Renderer = "helm"          // the program lab/helm
)

// Folder is where a plugin's files are, below the folder of the lab's programs.
func Folder(p spec.NetworkPlugin) string { return filepath.Join("plugins", string(p)) }

// Image is the image of all pods of a plugin. Its programs are whatever the plugin's module is.
func Image(p spec.NetworkPlugin) string { return "lab.liqonet.io/" + string(p) + ":lab" }

// Target is a cluster that gets its network plugin.
type Target struct {
	spec.Cluster
	Kubernetes string // version of its API server
	Tools      string // folder of the lab's programs
}

// Manifests returns the objects of a cluster's network plugin as a list in JSON.
func Manifests(ctx context.Context, t Target) ([]byte, error) {
	c := t.Cluster
	folder := filepath.Join(t.Tools, Folder(c.NetworkPlugin))
	var all []object
	var err error
	switch c.NetworkPlugin.Current() {
	case spec.PluginFlannel:
		all, err = flannel(folder, c)
	case spec.PluginCilium:
		all, err = cilium(ctx, folder, t)
	default:
		return nil, fmt.Errorf("network plugin %s has no manifests", c.NetworkPlugin)
	}
	if err != nil {
		return nil, fmt.Errorf("manifests of %s: %w", c.NetworkPlugin, err)
	}
	for _, o := range all {
		if err := o.fit(c.NetworkPlugin); err != nil {
			return nil, fmt.Errorf("manifests of %s: %w", c.NetworkPlugin, err)
		}
	}
	return list(all)
}
