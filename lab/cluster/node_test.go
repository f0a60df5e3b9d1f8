package cluster

import (
	"crypto/tls"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/lab/process"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

func newIdentity(t *testing.T) *Identity {
	t.Helper()
	s, err := spec.Parse([]byte("clusters: [{name: a, mtu: 1400}]"))
	require.NoError(t, err)
	id, err := NewIdentity(s.Clusters[0])
	require.NoError(t, err)
	return id
}

// read returns the content of a file below dir.
func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return text
}

func TestConfigureNode(t *testing.T) {
	disk := t.TempDir()
	n := Node{Identity: newIdentity(t), Number: 2}
	services, err := n.Configure(disk, "/usr/sbin/runc", []string{"000001.tar"})
	require.NoError(t, err)
	var names []string
	for _, v := range services {
		names = append(names, v.Name)
	}
	if want := []string{"containerd", "import", "import", "kubelet", "kube-proxy"}; !slices.Equal(names, want) {
		t.Errorf("services %v, want %v", names, want)
	}

	var network struct {
		Plugins []struct {
			MTU  int `json:"mtu"`
			IPAM struct {
				Ranges [][]struct {
					Subnet netip.Prefix `json:"subnet"`
				} `json:"ranges"`
			} `json:"ipam"`
		} `json:"plugins"`
	}
	require.NoError(t, json.Unmarshal(read(t, disk, "etc/cni/net.d/10-lab.conflist"), &network))
	if got := network.Plugins[0]; got.MTU != 1400 || got.IPAM.Ranges[0][0].Subnet != n.PodCIDR() {
		t.Errorf("network %+v", got)
	}
	for _, name := range []string{"kubelet.yaml", "kube-proxy.yaml", "kubelet.kubeconfig", "kube-proxy.kubeconfig"} {
		var document map[string]any
		if err := yaml.UnmarshalStrict(read(t, disk, "conf/"+name), &document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	runtime := string(read(t, disk, "conf/containerd.toml"))
	for _, want := range []string{`"` + WorkloadImage + `"`, `"/usr/sbin/runc"`, `"/opt/lab/bin/cni"`} {
		if !strings.Contains(runtime, want) {
			t.Errorf("containerd.toml lacks %s", want)
		}
	}
}

// TestConfigurePool wants the addresses of a pool, and no others, in a node's network.
func TestConfigurePool(t *testing.T) {
	disk := t.TempDir()
	id := newIdentity(t)
	id.Cluster.Style = spec.Style{PodNetwork: spec.VXLAN, PodAddresses: spec.Pool, KubeProxy: spec.ProxyIptables}
	n := Node{Identity: id, Number: 2}
	if _, err := n.Configure(disk, "runc", nil); err != nil {
		t.Fatal(err)
	}
	var network struct {
		Plugins []struct {
			Type string `json:"type"`
			MTU  int    `json:"mtu"`
			IPAM struct {
				Ranges [][]struct{ Subnet, RangeStart, RangeEnd string } `json:"ranges"`
			} `json:"ipam"`
		} `json:"plugins"`
	}
	require.NoError(t, json.Unmarshal(read(t, disk, "etc/cni/net.d/10-lab.conflist"), &network))
	pods := network.Plugins[0]
	if pods.Type != "ptp" || pods.MTU != 1350 || len(pods.IPAM.Ranges[0]) != len(n.Pods()) {
		t.Fatalf("network %+v", pods)
	}
	for i, want := range n.Pods() {
		if r := pods.IPAM.Ranges[0][i]; r.RangeStart != want.Addr().String() || r.RangeEnd != r.RangeStart {
			t.Errorf("range %+v, want %s alone", r, want)
		}
	}
	if proxy := string(read(t, disk, "conf/kube-proxy.yaml")); !strings.Contains(proxy, "mode: iptables\n") {
		t.Errorf("kube-proxy:\n%s", proxy)
	}
}

// TestConfigurePlugin wants the plugin's image in a node, no configuration of the lab's network, and no kube-proxy.
func TestConfigurePlugin(t *testing.T) {
	disk := t.TempDir()
	id := newIdentity(t)
	id.Cluster.NetworkPlugin, id.Cluster.KubeProxy = spec.PluginCilium, spec.ProxyNone
	services, err := Node{Identity: id, Number: 1}.Configure(disk, "runc", nil)
	require.NoError(t, err)
	var names, imported []string
	for _, v := range services {
		names = append(names, v.Name)
		if v.Name == "import" {
			imported = append(imported, v.Args[len(v.Args)-1])
		}
	}
	if want := []string{"containerd", "import", "import", "kubelet"}; !slices.Equal(names, want) {
		t.Errorf("services %v, want %v", names, want)
	}
	if want := "/opt/lab/bin/plugins/cilium/image.tar"; !slices.Contains(imported, want) {
		t.Errorf("imported are %v, want %s among them", imported, want)
	}
	if _, err := os.Stat(filepath.Join(disk, "etc/cni/net.d/10-lab.conflist")); !os.IsNotExist(err) {
		t.Errorf("the lab's network is configured: error %v", err)
	}
}

func TestNodeIsNotAdmittedAtOnce(t *testing.T) {
	disk := t.TempDir()
	n := Node{Identity: newIdentity(t), Number: 1}
	services, err := n.Configure(disk, "runc", nil)
	require.NoError(t, err)
	file := filepath.Join(disk, "conf", admitted)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("%s before Admit: error %v", file, err)
	}
	require.NoError(t, n.Admit(disk))
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	kubelet := services[slices.IndexFunc(services, func(v process.Service) bool { return v.Name == "kubelet" })]
	if !slices.Contains(kubelet.After, conf(admitted)) {
		t.Errorf("kubelet waits for %v, want %s among them", kubelet.After, conf(admitted))
	}
}

func TestControlPlaneCertificates(t *testing.T) {
	disk := t.TempDir()
	id := newIdentity(t)
	services, err := id.ControlPlane(disk, "/tools")
	require.NoError(t, err)
	pair, err := tls.LoadX509KeyPair(filepath.Join(disk, "pki/apiserver.crt"), filepath.Join(disk, "pki/apiserver.key"))
	require.NoError(t, err)
	// Clients on the host come by 127.0.0.1, nodes by the node network, pods by the Service.
	for _, host := range []string{"127.0.0.1", "172.31.1.10", "10.96.0.1", "kubernetes.default.svc"} {
		if err := pair.Leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if err := pair.Leaf.CheckSignatureFrom(id.authority.X509()); err != nil {
		t.Error(err)
	}
	for _, v := range services {
		for _, arg := range v.Args {
			_, path, ok := strings.Cut(arg, "=")
			if ok && strings.HasPrefix(path, filepath.Join(disk, "pki")) {
				if _, err := os.Stat(path); err != nil {
					t.Errorf("%s: %s: %v", v.Name, arg, err)
				}
			}
		}
	}
}
