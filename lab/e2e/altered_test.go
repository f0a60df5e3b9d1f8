package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab"
)

// gatewayPod is the pod of a cluster's only gateway.
type gatewayPod struct{ Name, Node, IP string }

func gatewayOf(ctx context.Context, t *testing.T, l *lab.Lab, cluster string) gatewayPod {
	t.Helper()
	words := strings.Fields(kubectl(ctx, t, l, cluster, "-n", "liqonet", "get", "pods", "-l", "liqonet.io/component=gateway",
		"-o", "jsonpath={.items[0].metadata.name} {.items[0].spec.nodeName} {.items[0].status.podIP}"))
	if len(words) != 3 {
		t.Fatalf("the gateway of cluster %s: %q", cluster, words)
	}
	return gatewayPod{words[0], words[1], words[2]}
}

// record is what a ConfigMap of liqonet's holds.
func record(ctx context.Context, t *testing.T, l *lab.Lab, name string) string {
	t.Helper()
	return kubectl(ctx, t, l, "a", "-n", "liqonet", "get", "configmap", name, "-o", "jsonpath={.data.record}")
}

// testStolenRecords has the token of a's gateway write whatever it may into the gateway's record. No node ever sends to, or
// takes packets from, an address that is not the gateway's, and the gateway's own helper writes the record again.
func testStolenRecords(ctx context.Context, t *testing.T, l *lab.Lab, conn connection) {
	gateway := gatewayOf(ctx, t, l, "a")
	thief := helperAccount(ctx, t, l, "a", "gateway-b", gateway.Name)
	sender := podOn(ctx, t, l, "a", "a-2")
	victim, target := sender.IP, conn.Local.seen(t, podOn(ctx, t, l, "b", "b-1").IP)
	place := func(pod, node, ip string) string {
		return fmt.Sprintf("version: 1\npod: %s\nnode: %s\npodIP: %s\n", pod, node, ip)
	}
	for what, text := range map[string]string{
		"a pod's address":       place(gateway.Name, gateway.Node, victim),
		"a pod":                 place(sender.Name, "a-2", victim),
		"a helper of that node": place("node-x", "a-2", victim),
		"what is no record":     "x",
		"a fabric":              record(ctx, t, l, "fabric"),
		"a peering":             strings.ReplaceAll(record(ctx, t, l, "peering-b"), "10.", "172."),
	} {
		patch, err := json.Marshal(map[string]any{"data": map[string]string{"record": text}})
		if err != nil {
			t.Fatal(err)
		}
		thief.want(ctx, t, http.StatusOK, http.MethodPatch, "/api/v1/namespaces/liqonet/configmaps/gateway-b", string(patch))
		var now string
		await(ctx, t, func() bool {
			for _, node := range nodesOf(ctx, t, l, "a") {
				const script = "nft list table ip liqonet; ip nexthop; ip -d link | grep remote"
				if out, err := l.NodeExec(ctx, node, "sh", "-c", script+" || true"); err != nil || strings.Contains(string(out), victim+" ") {
					t.Errorf("%s: node %s: %v\n%s", what, node, err, out)
				}
			}
			now = record(ctx, t, l, "gateway-b")
			return strings.Contains(now, "podIP: "+gateway.IP) && strings.Contains(now, "pod: "+gateway.Name)
		}, func() string { return fmt.Sprintf("%s: the record is\n%s", what, now) })
		inPod(ctx, t, l, "a", sender, "get", "http://"+target+":8080/")
	}
}

// testAlterations has an administrator delete and alter objects. What helpers may write is back soon, what they may not
// is told by status, and packets cross meanwhile.
func testAlterations(ctx context.Context, t *testing.T, u users, conn connection) {
	l := u.admin.lab
	sender, target := podOn(ctx, t, l, "a", "a-1"), conn.Local.seen(t, podOn(ctx, t, l, "b", "b-1").IP)
	crosses := func() { inPod(ctx, t, l, "a", sender, "get", "http://"+target+":8080/") }
	lease := kubectl(ctx, t, l, "a", "-n", "liqonet", "get", "leases", "-l", "liqonet.io/node=a-1", "-o", "jsonpath={.items[0].metadata.name}")
	report := func() string {
		out, _ := l.Kubectl(ctx, "a", "-n", "liqonet", "get", "lease", lease, "-o",
			`jsonpath={.metadata.annotations.liqonet\.io/node} {.metadata.labels.liqonet\.io/component} {.metadata.labels.liqonet\.io/node}`)
		return string(out) // "" while it is gone
	}
	for _, args := range [][]string{
		{"delete", "lease", lease}, {"label", "lease", lease, "liqonet.io/component-"}, {"label", "lease", lease, "liqonet.io/node-"},
		{"annotate", "lease", lease, "liqonet.io/node-"},
	} {
		kubectl(ctx, t, l, "a", append([]string{"-n", "liqonet"}, args...)...)
		await(ctx, t, func() bool { return strings.Contains(report(), "name: a-1") && strings.HasSuffix(report(), "node a-1") },
			func() string { return fmt.Sprintf("after %v the Lease is %q", args, report()) })
		crosses()
	}
	saved := filepath.Join(t.TempDir(), "saved.yaml")
	for object, args := range map[string][]string{
		"ConfigMap peering-b":              {"label", "configmap", "peering-b", "liqonet.io/component=status", "--overwrite"},
		"ConfigMap fabric":                 {"patch", "configmap", "fabric", "--type=merge", "-p", `{"data":{"record":"x"}}`},
		"Role gateway-b":                   {"delete", "role", "gateway-b"},
		"Deployment gateway-b":             {"label", "deployment", "gateway-b", "liqonet.io/peering-"},
		"RoleBinding node":                 {"patch", "rolebinding", "node", "--type=merge", "-p", `{"subjects":null}`},
		"DaemonSet node":                   {"delete", "daemonset", "node", "--cascade=orphan"},
		"ServiceAccount gateway-b":         {"label", "serviceaccount", "gateway-b", "liqonet.io/component=fabric", "--overwrite"},
		"ClusterRole liqonet:liqonet:node": {"patch", "clusterrole", "liqonet:liqonet:node", "--type=merge", "-p", `{"rules":null}`},
	} {
		kind, name, _ := strings.Cut(object, " ")
		text := kubectl(ctx, t, l, "a", "-n", "liqonet", "get", kind, name, "-o", "yaml")
		if err := os.WriteFile(saved, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		kubectl(ctx, t, l, "a", append([]string{"-n", "liqonet"}, args...)...)
		out, said, code := u.looker.run(ctx, t, "network", "status", "--context", "a")
		if code != 3 || !strings.Contains(out, object) {
			t.Errorf("after %v status does not name %s: exit code %d\n%s%s", args, object, code, out, said)
		}
		crosses()
		kubectl(ctx, t, l, "a", "-n", "liqonet", "replace", "--force", "--cascade=orphan", "-f", saved)
		crosses()
	}
	awaitHealthy(ctx, t, u.looker, 2)
}
