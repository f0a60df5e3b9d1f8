package plugin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// manifest has what the lab changes, in a form like flannel's.
const manifest = `---
kind: ConfigMap
apiVersion: v1
metadata: {name: kube-flannel-cfg}
data:
  cni-conf.json: |
    {"cniVersion": "1.0.0", "plugins": [{"type": "flannel"}]}
  net-conf.json: |
    {"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "Port": 8472}}
---
kind: DaemonSet
metadata: {name: x}
spec:
  template:
    spec:
      initContainers: [{name: one, image: registry/one}]
      containers: [{name: two, image: registry/two, volumeMounts: [{name: run, mountPath: /run}, {name: modules, mountPath: /lib/modules}]}]
      volumes: [{name: run, hostPath: {path: /run}}, {name: modules, hostPath: {path: /lib/modules}}]
`

func cluster(t *testing.T, text string) spec.Cluster {
	t.Helper()
	s, err := spec.Parse([]byte(text))
	require.NoError(t, err)
	return s.Clusters[0]
}

// objects renders the manifests of a cluster, from the test's manifest.
func objects(t *testing.T, c spec.Cluster) []object {
	t.Helper()
	tools := t.TempDir()
	folder := filepath.Join(tools, Folder(spec.PluginFlannel))
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, Manifest), []byte(manifest), 0o644))
	text, err := Manifests(t.Context(), Target{Cluster: c, Tools: tools})
	require.NoError(t, err)
	var l struct{ Items []object }
	require.NoError(t, json.Unmarshal(text, &l))
	if len(l.Items) != 2 {
		t.Fatalf("%d objects, want 2:\n%s", len(l.Items), text)
	}
	return l.Items
}

func TestFlannelHasTheClustersRange(t *testing.T) {
	all := objects(t, cluster(t, `clusters: [{name: a, networkPlugin: flannel, podCIDR: 10.9.0.0/16, flannelNetConf: {Backend: {Type: host-gw}}}]`))
	data := all[0].at("data")
	if got, want := data["net-conf.json"], `{"Backend":{"Port":8472,"Type":"host-gw"},"Network":"10.9.0.0/16"}`; got != want {
		t.Errorf("net-conf.json %s, want %s", got, want)
	}
	if got, _ := data["cni-conf.json"].(string); !strings.Contains(got, `"cniVersion":"0.4.0"`) || !strings.Contains(got, `"type":"flannel"`) {
		t.Errorf("cni-conf.json %s", got)
	}
}

func TestNamespacesComeFirst(t *testing.T) {
	text, err := list([]object{{"kind": "Role"}, {"kind": "CustomResourceDefinition"}, {"kind": "Pod"}, {"kind": "Namespace"}})
	require.NoError(t, err)
	const want = `"items":[{"kind":"Namespace"},{"kind":"CustomResourceDefinition"},{"kind":"Role"},{"kind":"Pod"}]`
	if !strings.Contains(string(text), want) {
		t.Errorf("list %s, want %s", text, want)
	}
}

func TestPodsRunInTheLab(t *testing.T) {
	all := objects(t, cluster(t, `clusters: [{name: a, networkPlugin: flannel}]`))
	text, err := yaml.Marshal(all[1].at("spec", "template", "spec"))
	require.NoError(t, err)
	const want = `containers:
- image: lab.liqonet.io/flannel:lab
  imagePullPolicy: IfNotPresent
  name: two
  volumeMounts:
  - mountPath: /usr
    name: usr
    readOnly: true
  - mountPath: /run
    name: run
  - mountPath: /var/lib/modules
    name: modules
initContainers:
- image: lab.liqonet.io/flannel:lab
  imagePullPolicy: IfNotPresent
  name: one
  volumeMounts:
  - mountPath: /usr
    name: usr
    readOnly: true
volumes:
- hostPath:
    path: /run
  name: run
- hostPath:
    path: /var/lib/modules
  name: modules
- hostPath:
    path: /usr
  name: usr
`
	if string(text) != want {
		t.Errorf("pod:\n%swant:\n%s", text, want)
	}
}

func TestCiliumValues(t *testing.T) {
	for text, want := range map[string]map[string]any{
		"kubeProxy: iptables": {"k8sServiceHost": "172.31.1.10", "k8sServicePort": 6443.0, "kubeProxyReplacement": false, "devices": nil},
		"kubeProxy: none":     {"kubeProxyReplacement": true, "l7Proxy": false},
		"ciliumValues: {devices: eth0, operator: {replicas: 2}}": {"devices": "eth0"},
	} {
		encoded, err := ciliumValues(cluster(t, "clusters: [{name: a, networkPlugin: cilium, "+text+"}]"))
		require.NoError(t, err)
		var got object
		require.NoError(t, yaml.Unmarshal(encoded, &got))
		for field, value := range want {
			if got[field] != value {
				t.Errorf("%s: %s is %v, want %v", text, field, got[field], value)
			}
		}
		if root, _ := got.at("cgroup")["hostRoot"].(string); !strings.HasPrefix(root, "/sys/fs/cgroup") || got.at("cgroup", "autoMount")["enabled"] != false {
			t.Errorf("%s: cgroup %v", text, got["cgroup"])
		}
	}
}
