package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// matrixVariable, when set, has TestStyles go through every style instead of a few in which any two values meet.
const matrixVariable = "LIQONET_TEST_MATRIX"

// TestStyles connects clusters whose network plugins and kube-proxies handle packets in different ways.
func TestStyles(t *testing.T) {
	inTurn(t, 6)
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	styles := spec.Pairwise()
	if os.Getenv(matrixVariable) != "" {
		styles = spec.Styles()
	}
	for i := range len(styles) / 2 {
		// The first with the last: neighbours in the list are much alike.
		a, b := styles[i], styles[len(styles)-1-i]
		t.Run(a.String()+" with "+b.String(), func(t *testing.T) {
			declared := spec.Spec{Clusters: []spec.Cluster{{Name: "a", Style: a}, {Name: "b", Style: b}}}
			if i == 0 {
				declared.Clusters[0].IPFamilies = []spec.Family{spec.IPv6, spec.IPv4}
				declared.Clusters[1].IPFamilies = []spec.Family{spec.IPv4, spec.IPv6}
			}
			if i%2 == 1 {
				declared.Clusters[1].PodCIDR = netip.MustParsePrefix("10.245.0.0/16")
			}
			testStyles(ctx, t, declared.Complete())
		})
	}
}

// testStyles connects clusters a and b, and sends packets of every kind between them. Their nodes filter reverse paths
// strictly.
func testStyles(ctx context.Context, t *testing.T, declared spec.Spec) {
	t.Helper()
	l := startLab(ctx, t, "e2e-styles", declared)
	c := newLiqoctl(ctx, t, l)
	c.defaults = true
	for _, cluster := range []string{"a", "b"} {
		for _, node := range nodesOf(ctx, t, l, cluster) {
			inNode(ctx, t, c, node, "sysctl -qw net.ipv4.conf.all.rp_filter=1")
		}
	}
	conn := c.connect(ctx, t)
	const headers = 80 + 20 + 8 // of the tunnel; IP and UDP inside it
	size := min(declared.Clusters[0].PodMTU(), declared.Clusters[1].PodMTU()) - headers
	for i, s := range sides(conn) {
		// Without masquerading, and with a VXLAN back to the pod, the filters of a node drop packets that pods of other
		// nodes send to it: they do not reach its NodePorts.
		style := declared.Clusters[i].Style
		byNode := style.Masquerade != spec.MasqueradeNone || style.PodNetwork != spec.VXLAN
		t.Run("pods of "+s.cluster, func(t *testing.T) { testStyledPods(ctx, t, l, s, strconv.Itoa(size)) })
		t.Run("a Service in "+s.cluster, func(t *testing.T) { testFarService(ctx, t, l, s, askers{outside: true, podByNode: byNode}) })
	}
	t.Run("nodes", func(t *testing.T) { testNodesReachPods(ctx, t, l, conn) })
}

// testMemoryLimits checks that helpers have a memory limit of Go's beside that of their containers.
func testMemoryLimits(ctx context.Context, t *testing.T, c liqoctl) {
	for _, object := range []string{"daemonset/node", "deployment/gateway-b"} {
		spec := kubectl(ctx, t, c.lab, "a", "-n", "liqonet", "get", object, "-o", "jsonpath={.spec.template.spec.containers[0].env}")
		if !strings.Contains(spec, "GOMEMLIMIT") {
			t.Errorf("%s has no memory limit:\n%s", object, spec)
		}
	}
}

// testStyledPods has each pod of a cluster reach each of the other's, which sees its address.
func testStyledPods(ctx context.Context, t *testing.T, l *lab.Lab, s side, size string) {
	for _, from := range nodesOf(ctx, t, l, s.cluster) {
		sender := podOn(ctx, t, l, s.cluster, from)
		var sent exchanges
		for _, to := range nodesOf(ctx, t, l, s.other) {
			receiver := podOn(ctx, t, l, s.other, to)
			target := s.self.seen(t, receiver.IP)
			sent.add(fmt.Sprintf("node=%s ip=%s from=%s:", to, receiver.IP, s.peer.seen(t, sender.IP)),
				"tcp -size 100000 "+target+":7", "udp -df -size "+size+" "+target+":7")
			sent.add("", "ping -df -size "+size+" "+target)
		}
		sent.test(ctx, t, l, s.cluster, sender)
	}
}

// askers are those who ask for a Service besides pods and nodes, by its address, and nodes at another node's port.
type askers struct {
	outside   bool // a machine in no cluster, at the port of each node
	podByNode bool // a pod, at the port of another node
}

// testFarService creates a Service whose endpoints are the other cluster's pods, and sends requests.
func testFarService(ctx context.Context, t *testing.T, l *lab.Lab, s side, who askers) {
	t.Helper()
	var far []string
	for _, node := range nodesOf(ctx, t, l, s.other) {
		far = append(far, s.self.seen(t, podOn(ctx, t, l, s.other, node).IP))
	}
	file := filepath.Join(t.TempDir(), "far.json")
	require.NoError(t, os.WriteFile(file, farService(t, far), 0o600))
	kubectl(ctx, t, l, s.cluster, "apply", "-f", file)
	status, err := l.Status(ctx)
	require.NoError(t, err)
	workload := filepath.Join(status.Tools, "workload")
	field := func(path string) string {
		return kubectl(ctx, t, l, s.cluster, "get", "service", "far", "-o", "jsonpath={"+path+"}")
	}
	url, port := "http://"+field(".spec.clusterIP")+"/", field(".spec.ports[0].nodePort")
	nodes := nodesOf(ctx, t, l, s.cluster)
	node := nodes[0]
	// kube-proxy listens at the primary address of a node.
	addresses := nodeAddresses(ctx, t, l, s.cluster)
	other := addresses[len(addresses)-1]
	byNode := "http://" + net.JoinHostPort(other, port) + "/"
	asks := map[string]func() ([]byte, error){
		"a pod": func() ([]byte, error) {
			asker := podOn(ctx, t, l, s.cluster, node)
			return l.Kubectl(ctx, s.cluster, "exec", asker.Name, "--", "/bin/workload", "get", url)
		},
		"a node":                func() ([]byte, error) { return l.NodeExec(ctx, node, workload, "get", url) },
		"a node, by a NodePort": func() ([]byte, error) { return l.NodeExec(ctx, node, workload, "get", byNode) },
	}
	if who.podByNode {
		asks["a pod, by a NodePort"] = func() ([]byte, error) {
			asker := podOn(ctx, t, l, s.cluster, node)
			return l.Kubectl(ctx, s.cluster, "exec", asker.Name, "--", "/bin/workload", "get", byNode)
		}
	}
	if !who.outside {
		addresses = nil
	}
	for _, address := range addresses {
		asks["outside, by node "+address] = func() ([]byte, error) {
			return l.NodeExec(ctx, "outside", workload, "get", "-timeout", "5s", "http://"+net.JoinHostPort(address, port)+"/")
		}
	}
	for name, ask := range asks {
		var out []byte
		var err error
		// kube-proxy learns of the Service in its own time.
		await(ctx, t, func() bool {
			out, err = ask()
			return err == nil && strings.Contains(string(out), "node="+s.other+"-")
		}, func() string { return fmt.Sprintf("the Service from %s: %s %v", name, out, err) })
	}
}

// farService is a Service on port 80, and on one of each node, and the addresses behind it.
func farService(t *testing.T, addresses []string) []byte {
	t.Helper()
	endpoints := make([]any, len(addresses))
	for i, a := range addresses {
		endpoints[i] = map[string]any{"addresses": []string{a}}
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "far"},
			"spec": map[string]any{"type": "NodePort", "ipFamilies": []string{"IPv4"}, "ports": []any{map[string]any{"name": "http", "port": 80, "targetPort": 8080}}},
		},
		map[string]any{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
			"metadata":  map[string]any{"name": "far", "labels": map[string]any{"kubernetes.io/service-name": "far"}},
			"ports":     []any{map[string]any{"name": "http", "port": 8080}},
			"endpoints": endpoints,
		},
	}})
	require.NoError(t, err)
	return text
}
