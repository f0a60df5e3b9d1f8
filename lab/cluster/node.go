package cluster

import (
	"bytes"
	"embed"
	"fmt"
	"net/netip"
	"path/filepath"
	"text/template"

	"liqonet.io/liqonet/lab/node"
	"liqonet.io/liqonet/lab/pki"
	"liqonet.io/liqonet/lab/plugin"
	"liqonet.io/liqonet/lab/process"
	"liqonet.io/liqonet/lab/spec"
)

// WorkloadImage is the image that every node has from the start: pause without arguments, test programs with.
const WorkloadImage = "lab.liqonet.io/workload:v1"

// WorkloadArchive is the image's file in the folder of programs.
const WorkloadArchive = "workload.tar"

//go:embed config
var config embed.FS

var templates = template.Must(template.ParseFS(config, "config/*"))

// networks are the configurations of the network plugin, by where pods get their addresses from.
var networks = map[spec.PodAddresses]string{spec.PerNode: "bridge.conflist", spec.Pool: "routed.conflist"}

// Node is the nth node, from 1, of a cluster.
type Node struct {
	*Identity
	Number int
}

// Name is the node's name.
func (n Node) Name() string { return n.Cluster.NodeName(n.Number) }

// Address is the node's address in the node network.
func (n Node) Address() netip.Addr { return n.Cluster.NodeAddress(n.Number) }

// PodCIDR is the node's share of the pod CIDR.
func (n Node) PodCIDR() netip.Prefix { return n.Cluster.NodePodCIDR(n.Number) }

// Pods are the ranges and addresses that the node may give its pods.
func (n Node) Pods() []netip.Prefix { return n.Cluster.Pods(n.Number) }

// TunnelAddress is the node's own address where a tunnel carries pods' packets.
func (n Node) TunnelAddress() netip.Addr { return n.Cluster.TunnelAddress(n.Number) }

// Configure writes the node's files to its disk and returns its services. images are the names of the image
// archives in the folder of images that the node imports before kubelet starts. runc is the runtime's path.
func (n Node) Configure(disk, runc string, images []string) ([]process.Service, error) {
	conf, err := n.keys()
	if err != nil {
		return nil, fmt.Errorf("keys of node %s: %w", n.Name(), err)
	}
	for _, name := range []string{"containerd.toml", "kubelet.yaml", "kube-proxy.yaml", "resolv.conf"} {
		if conf[name], err = n.render(name, runc); err != nil {
			return nil, err
		}
	}
	if err := conf.write(filepath.Join(disk, "conf")); err != nil {
		return nil, err
	}
	if n.Cluster.NetworkPlugin != spec.PluginLab {
		return n.services(images), nil // the plugin's pods configure it
	}
	network, err := n.render(networks[n.Cluster.PodAddresses], runc)
	if err != nil {
		return nil, err
	}
	if err := (files{"10-lab.conflist": network}).write(filepath.Join(disk, "etc/cni/net.d")); err != nil {
		return nil, err
	}
	return n.services(images), nil
}

// keys returns the certificates and kubeconfigs of kubelet and kube-proxy.
func (n Node) keys() (files, error) {
	kubelet, err := n.authority.Issue(pki.Subject{
		User: "system:node:" + n.Name(), Group: "system:nodes",
		Names: []string{n.Name()}, Addresses: append(n.Cluster.NodeAddresses(n.Number), localhost),
	})
	if err != nil {
		return nil, err
	}
	proxy, err := n.authority.Issue(pki.Subject{User: "system:kube-proxy"})
	if err != nil {
		return nil, err
	}
	f := files{"ca.crt": n.Authority()}
	f.addPair("kubelet", kubelet)
	if f["kubelet.kubeconfig"], err = n.kubeconfig(kubelet); err != nil {
		return nil, err
	}
	f["kube-proxy.kubeconfig"], err = n.kubeconfig(proxy)
	return f, err
}

// render fills a template of config.
func (n Node) render(name, runc string) ([]byte, error) {
	var text bytes.Buffer
	err := templates.ExecuteTemplate(&text, name, map[string]any{
		"Cluster": n.Cluster, "Node": n.Name(), "PodCIDR": n.PodCIDR(), "Pods": n.Pods(),
		"PodCIDRs": n.Cluster.PodCIDRs(), "PodCIDR6": spec.NodePodCIDR6(n.Number),
		"Conf": node.ConfDir, "Tools": node.ToolsDir, "Image": WorkloadImage, "Runc": runc,
	})
	if err != nil {
		return nil, fmt.Errorf("render %s of node %s: %w", name, n.Name(), err)
	}
	return text.Bytes(), nil
}

// services returns the node's programs, in the order of their start.
func (n Node) services(images []string) []process.Service {
	const socket = "/run/containerd/containerd.sock"
	kube := filepath.Join(node.ToolsDir, "kube")
	vs := []process.Service{
		service("containerd", filepath.Join(node.ToolsDir, "containerd"), "--config="+conf("containerd.toml")),
	}
	archives := []string{filepath.Join(node.ToolsDir, WorkloadArchive)}
	if n.Cluster.NetworkPlugin != spec.PluginLab {
		archives = append(archives, filepath.Join(node.ToolsDir, plugin.Folder(n.Cluster.NetworkPlugin), plugin.Archive))
	}
	for _, image := range images {
		archives = append(archives, filepath.Join(node.ImagesDir, image))
	}
	for _, archive := range archives {
		v := service("import", ImportCommand(archive)...)
		v.After, v.Once = []string{socket}, true
		vs = append(vs, v)
	}
	kubelet := service("kubelet", kube, "kubelet",
		"--config="+conf("kubelet.yaml"),
		"--kubeconfig="+conf("kubelet.kubeconfig"),
		"--hostname-override="+n.Name(),
		"--node-ip="+list(n.Cluster.NodeAddresses(n.Number)),
	)
	kubelet.After = []string{socket, conf(admitted)}
	vs = append(vs, kubelet)
	if n.Cluster.KubeProxy == spec.ProxyNone {
		return vs
	}
	proxy := service("kube-proxy", kube, "kube-proxy", "--config="+conf("kube-proxy.yaml"))
	proxy.After = []string{conf(admitted)} // an API server without roles would delay it longer
	return append(vs, proxy)
}

// admitted is an empty file in the node's configuration. Without it kubelet would create the Node object
// itself, with another pod CIDR.
const admitted = "admitted"

// Admit lets the kubelet of the node on that disk start.
func (n Node) Admit(disk string) error {
	return files{admitted: nil}.write(filepath.Join(disk, "conf"))
}

// ImportCommand is the command that imports the images of an archive, a path in the node, for kubelet.
func ImportCommand(archive string) []string {
	return []string{filepath.Join(node.ToolsDir, "ctr"), "--namespace=k8s.io", "images", "import", archive}
}

func conf(name string) string { return filepath.Join(node.ConfDir, name) }

func service(name string, args ...string) process.Service {
	return process.Service{
		Name: name,
		Args: args,
		Env:  []string{"PATH=" + node.Search, "HOME=/root"},
		Log:  filepath.Join(node.LogDir, name+".log"),
	}
}
