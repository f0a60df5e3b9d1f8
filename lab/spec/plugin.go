package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// NetworkPlugin is what gives the pods of a cluster their network.
type NetworkPlugin string

// The network plugins.
const (
	// PluginLab is the lab's own network: links and routes as a plugin makes them, in a style.
	PluginLab NetworkPlugin = "lab"
	// The others are real plugins, run as pods from their own manifests.
	PluginFlannel NetworkPlugin = "flannel"
	PluginCilium  NetworkPlugin = "cilium"
	// An earlier release of a real plugin can be upgraded to the current one.
	PluginFlannelEarlier = PluginFlannel + earlier
	PluginCiliumEarlier  = PluginCilium + earlier
)

// earlier ends the names of plugins in an earlier release.
const earlier = "-earlier"

// networkPlugins are all plugins, the default first.
var networkPlugins = []NetworkPlugin{PluginLab, PluginFlannel, PluginCilium, PluginFlannelEarlier, PluginCiliumEarlier}

// Current is the current release of a plugin.
func (p NetworkPlugin) Current() NetworkPlugin {
	return NetworkPlugin(strings.TrimSuffix(string(p), earlier))
}

// RealPlugins are the network plugins that run as pods.
func RealPlugins() []NetworkPlugin { return slices.Clone(networkPlugins[1:]) }

// Plugins returns the network plugins that run as pods in some cluster of the lab, now or after an upgrade, each once.
func (s Spec) Plugins() []NetworkPlugin {
	var used []NetworkPlugin
	for _, p := range RealPlugins() {
		if slices.ContainsFunc(s.Clusters, func(c Cluster) bool { return c.NetworkPlugin == p || c.NetworkPlugin.Current() == p }) {
			used = append(used, p)
		}
	}
	return used
}

// completePlugin fills the defaults of plugin and style in. A real plugin has no style of the lab's.
func completePlugin(c *Cluster) {
	fill(&c.NetworkPlugin, networkPlugins)
	if c.NetworkPlugin == PluginLab {
		c.Style = completeStyle(c.Style)
		return
	}
	fill(&c.KubeProxy, kubeProxies)
}

// pluginProblems lists what is wrong with plugin, style and the plugin's settings.
func (c Cluster) pluginProblems() []error {
	var errs []error
	if err := oneOf("networkPlugin", c.NetworkPlugin, networkPlugins); err != nil {
		return []error{err}
	}
	if c.NetworkPlugin == PluginLab {
		errs = append(errs, validateStyle(c.Style))
	} else {
		errs = append(errs, c.foreignStyle(), oneOf("kubeProxy", c.KubeProxy, append(slices.Clone(kubeProxies), ProxyNone)))
	}
	if c.KubeProxy == ProxyNone && c.NetworkPlugin.Current() != PluginCilium {
		errs = append(errs, fmt.Errorf("kubeProxy %s: networkPlugin %s does not translate Services; %s does", ProxyNone, c.NetworkPlugin, PluginCilium))
	}
	if len(c.FlannelNetConf) > 0 && c.NetworkPlugin.Current() != PluginFlannel {
		errs = append(errs, fmt.Errorf("flannelNetConf: networkPlugin is %s", c.NetworkPlugin))
	}
	if len(c.CiliumValues) > 0 && c.NetworkPlugin.Current() != PluginCilium {
		errs = append(errs, fmt.Errorf("ciliumValues: networkPlugin is %s", c.NetworkPlugin))
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// foreignStyle refuses the fields that describe the lab's own plugin.
func (c Cluster) foreignStyle() error {
	var errs []error
	for field, value := range map[string]string{
		"masquerade": string(c.Masquerade), "podNetwork": string(c.PodNetwork), "podAddresses": string(c.PodAddresses),
	} {
		if value != "" {
			errs = append(errs, fmt.Errorf("%s %s: networkPlugin %s decides that itself", field, value, c.NetworkPlugin))
		}
	}
	return errors.Join(errs...)
}
