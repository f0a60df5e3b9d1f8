package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"liqonet.io/liqonet/lab/spec"
)

// flannelCNI is the version of CNI's specification that lab/flannelcni knows: the last release of the CNI project's
// plugins with flannel's among them.
const flannelCNI = "0.4.0"

// flannel returns flannel's own manifest for a cluster.
func flannel(folder string, c spec.Cluster) ([]object, error) {
	text, err := os.ReadFile(filepath.Join(folder, Manifest))
	if err != nil {
		return nil, err
	}
	all, err := parse(text)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if !o.named("ConfigMap", "kube-flannel-cfg") {
			continue
		}
		net := map[string]any{"Network": c.PodCIDR.String()}
		merge(net, c.FlannelNetConf)
		if err := mergeFile(o.at("data"), "net-conf.json", net); err != nil {
			return nil, err
		}
		return all, mergeFile(o.at("data"), "cni-conf.json", map[string]any{"cniVersion": flannelCNI})
	}
	return nil, errors.New("no ConfigMap kube-flannel-cfg")
}

// mergeFile puts values over those of a JSON file in a ConfigMap.
func mergeFile(data object, file string, over map[string]any) error {
	text, _ := data[file].(string)
	var values map[string]any
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return fmt.Errorf("parse %s: %w", file, err)
	}
	merge(values, over)
	merged, err := json.Marshal(values)
	data[file] = string(merged)
	return err
}
