package build

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"liqonet.io/liqonet/lab/plugin"
	"liqonet.io/liqonet/lab/spec"
)

// Modules of the network plugins, and packages in them.
const (
	flannelModule = "github.com/flannel-io/flannel"
	ciliumModule  = "github.com/cilium/cilium"
)

// pluginPrograms are the distribution's programs that network plugins use, in builds and in pods, each with its Debian
// package.
var pluginPrograms = map[spec.NetworkPlugin]map[string]string{
	spec.PluginFlannel: {"gcc": "build-essential"}, // it has the C library's headers, too
	spec.PluginCilium:  {ciliumCompiler: ciliumCompiler, "ipset": "ipset"},
}

// ciliumCompiler makes Cilium's eBPF programs, in its pods: the release that Cilium's own image has.
const ciliumCompiler = "clang-19"

// pluginSets are the real network plugins: the programs, in one image, and the manifests.
var pluginSets = map[spec.NetworkPlugin]programSet{
	spec.PluginFlannel:        flannelSet(spec.PluginFlannel),
	spec.PluginFlannelEarlier: flannelSet(spec.PluginFlannelEarlier).of(earlierFlannel),
	spec.PluginCilium:         ciliumSet(spec.PluginCilium),
	spec.PluginCiliumEarlier:  ciliumSet(spec.PluginCiliumEarlier).of(earlierCilium),
}

func flannelSet(p spec.NetworkPlugin) programSet {
	return programSet{
		name: string(p),
		outputs: []output{
			{
				module: "flannel", folder: built("flannel"), cgo: true, // one of its backends is written in C
				packages: []string{flannelModule}, version: versionIn(flannelModule, flannelModule+"/pkg/version.Version", ""),
			},
			{module: "flannel", folder: built("flannel"), packages: []string{flannelModule + "/cmd/install_conf"}},
			{module: "flannelcni", folder: built("cni"), packages: []string{pluginPackages + "meta/flannel"}},
		},
		finish: func(ctx context.Context, source, dir string) error { return finishFlannel(ctx, p, source, dir) },
	}
}

func ciliumSet(p spec.NetworkPlugin) programSet {
	return programSet{
		name: string(p),
		outputs: []output{
			{
				module: "cilium", folder: built("cilium"), tags: "osusergo", version: ciliumVersion,
				packages: []string{ciliumModule + "/plugins/cilium-cni", ciliumModule + "/cilium-dbg", ciliumModule + "/daemon"},
			},
			{
				module: "cilium", folder: built("cilium"), tags: "osusergo,ipam_provider_operator", version: ciliumVersion,
				packages: []string{ciliumModule + "/operator"},
			},
			{module: "helm", folder: plugin.Folder(p), packages: []string{"."}},
		},
		finish: func(ctx context.Context, source, dir string) error { return finishCilium(ctx, p, source, dir) },
	}
}

// built is a folder of programs that are kept only in an image.
func built(name string) string { return filepath.Join("built", name) }

// versionIn puts the version of a module, less a prefix, into a variable of its programs.
func versionIn(module, variable, prefix string) func(context.Context, string) ([]string, error) {
	return func(ctx context.Context, folder string) ([]string, error) {
		version, err := moduleVersion(ctx, folder, module)
		return []string{"-X", variable + "=" + strings.TrimPrefix(version, prefix)}, err
	}
}

var ciliumVersion = versionIn(ciliumModule, ciliumModule+"/pkg/version.ciliumVersion", "v")

// finishFlannel writes flannel's image and takes its manifest from its module.
func finishFlannel(ctx context.Context, p spec.NetworkPlugin, source, dir string) error {
	module, err := moduleFolder(ctx, filepath.Join(source, "flannel"), flannelModule)
	if err != nil {
		return err
	}
	manifest, err := os.ReadFile(filepath.Join(module, "Documentation/kube-flannel.yml"))
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, plugin.Folder(p))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, plugin.Manifest), manifest, 0o644); err != nil {
		return err
	}
	programs := func(name string) string { return filepath.Join(dir, built(name)) }
	return finishPlugin(p, dir, []imageFile{
		{path: "opt/bin/flanneld", source: filepath.Join(programs("flannel"), "flannel")},
		{path: "opt/bin/install-conf", source: filepath.Join(programs("flannel"), "install_conf")},
		{path: "flannel", source: filepath.Join(programs("cni"), "flannel")},
	})
}

// finishCilium writes Cilium's image and takes its chart from its module.
func finishCilium(ctx context.Context, p spec.NetworkPlugin, source, dir string) error {
	module, err := moduleFolder(ctx, filepath.Join(source, "cilium"), ciliumModule)
	if err != nil {
		return err
	}
	chart := filepath.Join(dir, plugin.Folder(p), plugin.Chart)
	if err := os.CopyFS(chart, os.DirFS(filepath.Join(module, "install/kubernetes/cilium"))); err != nil {
		return fmt.Errorf("copy Cilium's chart: %w", err)
	}
	programs := filepath.Join(dir, built("cilium"))
	files := []imageFile{
		{path: "opt/bin/clang", target: "/usr/bin/" + ciliumCompiler},
		{path: "opt/bin/cilium-agent", source: filepath.Join(programs, "daemon")},
		{path: "opt/bin/cilium-dbg", source: filepath.Join(programs, "cilium-dbg")},
		{path: "opt/bin/cilium-operator-generic", source: filepath.Join(programs, "operator")},
		{path: "opt/cni", mode: 0o755},
		{path: "opt/cni/bin", mode: 0o755},
		{path: "opt/cni/bin/cilium-cni", source: filepath.Join(programs, "cilium-cni")},
		{path: "var/lib", mode: 0o755},
		{path: "var/lib/cilium", mode: 0o755},
	}
	for _, script := range []string{"plugins/cilium-cni/install-plugin.sh", "plugins/cilium-cni/cni-uninstall.sh", "images/cilium/init-container.sh"} {
		files = append(files, imageFile{path: path.Base(script), source: filepath.Join(module, script), mode: 0o755})
	}
	sources, err := ciliumSources(filepath.Join(module, "bpf"))
	if err != nil {
		return err
	}
	return finishPlugin(p, dir, append(files, sources...))
}

// ciliumSources are Cilium's eBPF programs, which its agent compiles for its node.
func ciliumSources(folder string) ([]imageFile, error) {
	const inside = "var/lib/cilium/bpf"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	files := []imageFile{{path: inside, mode: 0o755}}
	for _, e := range entries {
		if !slices.Contains([]string{"tests", "test-progs", "complexity-tests", "tools"}, e.Name()) {
			files = append(files, imageFile{path: path.Join(inside, e.Name()), source: filepath.Join(folder, e.Name())})
		}
	}
	return files, nil
}

// finishPlugin writes the image of a plugin's pods and removes its programs from the folder.
func finishPlugin(p spec.NetworkPlugin, dir string, files []imageFile) error {
	passwd := filepath.Join(dir, built("passwd"))
	if err := os.WriteFile(passwd, []byte("root:x:0:0:root:/root:/bin/sh\n"), 0o644); err != nil {
		return err
	}
	all := append(distribution(), imageFile{path: "etc/passwd", source: passwd})
	err := image{
		name: plugin.Image(p), files: append(all, files...), search: "/opt/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}.write(filepath.Join(dir, plugin.Folder(p), plugin.Archive))
	if err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, built("")))
}

// distribution replaces a distribution in an image: links into the node's /usr, which pods mount, in Debian's layout.
// Debian's alternatives are in /etc, which pods do not mount.
func distribution() []imageFile {
	var files []imageFile
	for _, folder := range []string{"usr", "tmp", "run", "var", "etc", "etc/alternatives", "opt", "opt/bin", "proc", "sys", "dev"} {
		files = append(files, imageFile{path: folder, mode: 0o755})
	}
	for _, folder := range []string{"bin", "sbin", "lib", "lib64"} {
		files = append(files, imageFile{path: folder, target: "usr/" + folder})
	}
	files = append(files, imageFile{path: "var/run", target: "/run"})
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, program := range []string{"", "-save", "-restore"} {
			files = append(files, imageFile{
				path: "etc/alternatives/" + family + program, target: "/usr/sbin/" + family + "-nft" + program,
			})
		}
	}
	return files
}

// moduleFolder returns the source folder of a dependency of the module in a folder.
func moduleFolder(ctx context.Context, folder, module string) (string, error) {
	dir, err := runGo(ctx, folder, "list", "-m", "-f", "{{.Dir}}", module)
	if err == nil && dir == "" {
		err = fmt.Errorf("source of module %s: not downloaded", module)
	}
	return dir, err
}
