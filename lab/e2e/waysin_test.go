package e2e

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// testWaysIn connects two clusters by each type of Service of a server's gateway except NodePort, which the other
// tests use, and removes liqonet. Load balancers of cluster a have names, those of cluster b addresses.
func testWaysIn(ctx context.Context, t *testing.T, admin liqoctl, declared spec.Spec) {
	t.Helper()
	l := admin.lab
	admin.atOnce(ctx, t, "reset", "a", "b")
	u := admin.users(ctx, t, "a", "b")
	t.Run("namespaces that refuse pods", func(t *testing.T) { testRefused(ctx, t, admin) })
	u.installer.atOnce(ctx, t, "init", "a", "b")
	c := u.connector
	pool := spec.BalancerPool(1)
	balancer := []string{"--gw-server-service-type", "LoadBalancer"}
	var conn connection

	t.Run("a load balancer that stays pending", func(t *testing.T) {
		_, said, code := c.run(ctx, t, append([]string{"network", "connect", "--context", "a", "--remote-context", "b",
			"--gw-server-service-loadbalancerip", "203.0.113.9", "--timeout", "20s"}, balancer...)...)
		if code != 1 || !strings.Contains(said, "no load balancer address yet") || !strings.Contains(said, "hint: if the cluster has no load balancers: --gw-server-service-type NodePort") {
			t.Errorf("exit code %d\n%s", code, said)
		}
		for _, cluster := range []string{"a", "b"} {
			if left := kubectl(ctx, t, l, cluster, "-n", "liqonet", "get", "services,deployments,secrets", "-l", "liqonet.io/peering", "-o", "name"); left != "" {
				t.Errorf("left in %s:\n%s", cluster, left)
			}
		}
	})
	t.Run("a load balancer", func(t *testing.T) {
		conn = c.connect(ctx, t, balancer...)
		c.wantEndpoint(ctx, t, "a", spec.BalancerAddress(pool, 1))
		testEveryPod(ctx, t, l, conn)
	})
	t.Run("a load balancer that leads to the gateway's node alone", func(t *testing.T) {
		kubectl(ctx, t, l, "b", "-n", "liqonet", "patch", "service", "gateway-a", "-p", `{"spec":{"externalTrafficPolicy":"Local"}}`)
		kubectl(ctx, t, l, "b", "-n", "liqonet", "delete", "pod", "-l", "liqonet.io/component=gateway,liqonet.io/peering=a")
		awaitHealthy(ctx, t, u.looker, 1)
		testEveryPod(ctx, t, l, conn)
	})
	disconnect := func(t *testing.T) {
		t.Helper()
		c.must(ctx, t, "network", "disconnect", "--context", "a", "--remote-context", "b")
	}
	annotated := append(balancer, "--gw-server-service-annotation", "example.com/internal=yes, in net-1")
	t.Run("settings for pods and Service", func(t *testing.T) {
		disconnect(t)
		u.installer.must(ctx, t, append([]string{"network", "init", "--context", "b", "--update"}, podSettings...)...)
		conn = c.connect(ctx, t, annotated...)
		testPodSettings(ctx, t, l)
		if again := c.connect(ctx, t, annotated...); again.Changed {
			t.Error("connect again changed something")
		}
		awaitHealthy(ctx, t, u.looker, 1)
		testEveryPod(ctx, t, l, conn)
	})
	t.Run("another port of the overlay, while connected", func(t *testing.T) {
		u.installer.must(ctx, t, "network", "init", "--context", "b", "--update", "--overlay-port", "6191")
		awaitOverlayPort(ctx, t, l, "b-1", "6191")
		awaitOverlayPort(ctx, t, l, "b-2", "6191")
		awaitHealthy(ctx, t, u.looker, 1)
		testEveryPod(ctx, t, l, conn)
		if again := c.connect(ctx, t, annotated...); again.Changed {
			t.Error("connect changed something")
		}
	})
	t.Run("a load balancer with an address that was asked for", func(t *testing.T) {
		disconnect(t)
		want := spec.BalancerAddress(pool, 77)
		conn = c.connect(ctx, t, append(balancer, "--gw-server-service-loadbalancerip", want.String())...)
		c.wantEndpoint(ctx, t, "a", want)
		testEveryPod(ctx, t, l, conn)
	})
	t.Run("a cluster IP, in one routed network", func(t *testing.T) {
		disconnect(t)
		b := declared.Clusters[1]
		if _, err := l.NodeExec(ctx, "router", "ip", "route", "add", b.ServiceCIDR.String(), "via", b.NodeAddress(1).String()); err != nil {
			t.Fatal(err)
		}
		conn = c.connect(ctx, t, "--gw-server-service-type", "ClusterIP")
		service := kubectl(ctx, t, l, "b", "-n", "liqonet", "get", "service", "gateway-a", "-o", "jsonpath={.spec.clusterIP}")
		c.wantEndpoint(ctx, t, "a", netip.MustParseAddr(service))
		testEveryPod(ctx, t, l, conn)
		disconnect(t)
	})
	t.Run("a load balancer with a name", func(t *testing.T) {
		conn = c.connect(ctx, t, append(balancer, "--server-side", "local")...)
		c.wantEndpoint(ctx, t, "b", spec.BalancerAddress(spec.BalancerPool(0), 1))
		record := kubectl(ctx, t, l, "b", "-n", "liqonet", "get", "configmap", "peering-a", "-o", "yaml")
		if name := declared.Clusters[0].BalancerName("liqonet", "gateway-b"); !strings.Contains(record, name+":51840") {
			t.Errorf("no %s in the record of the client:\n%s", name, record)
		}
		testEveryPod(ctx, t, l, conn)
		disconnect(t)
	})
	t.Run("nothing is left, as seen by pods that no quota admits", func(t *testing.T) {
		admin.atOnce(ctx, t, "reset", "a", "b")
		for _, cluster := range []string{"a", "b"} {
			admin.must(ctx, t, "network", "reset", "--verify-only", "--context", cluster)
			kubectl(ctx, t, l, cluster, "delete", "--ignore-not-found", "-f", u.roles)
		}
	})
}

// testRefused installs liqonet in namespaces of cluster a that do not admit its pods.
func testRefused(ctx context.Context, t *testing.T, c liqoctl) {
	t.Helper()
	for name, refusal := range map[string]struct {
		create [][]string // arguments of kubectl
		want   []string
	}{
		"restricted": {
			[][]string{{"label", "namespace", "restricted", "pod-security.kubernetes.io/enforce=restricted"}},
			[]string{`violates PodSecurity "restricted:latest"`, "hint: pods of liqonet need the level privileged"},
		},
		"baseline": {
			[][]string{{"label", "namespace", "baseline", "pod-security.kubernetes.io/enforce=baseline"}},
			[]string{`violates PodSecurity "baseline:latest"`, "hint: pods of liqonet need the level privileged"},
		},
		"full": {
			[][]string{{"-n", "full", "create", "quota", "none", "--hard=pods=0"}},
			[]string{"exceeded quota: none", "hint: raise the ResourceQuota"},
		},
	} {
		kubectl(ctx, t, c.lab, "a", "create", "namespace", name)
		for _, args := range refusal.create {
			kubectl(ctx, t, c.lab, "a", args...)
		}
		_, said, code := c.run(ctx, t, "network", "init", "--context", "a", "-n", name)
		for _, want := range append(refusal.want, "error: nodes: pod of DaemonSet node cannot start: FailedCreate") {
			if code != 1 || !strings.Contains(said, want) {
				t.Errorf("init in namespace %s: exit code %d\n%s\nwant %s", name, code, said, want)
			}
		}
		_, said, code = c.run(ctx, t, "network", "reset", "--context", "a", "-n", name) // its own pods are refused, too
		if left := kubectl(ctx, t, c.lab, "a", "-n", name, "get", "all,configmaps,secrets,leases", "-l", "liqonet.io/component", "-o", "name"); left != "" {
			t.Errorf("reset: exit code %d\n%s\nleft in namespace %s:\n%s", code, said, name, left)
		}
		kubectl(ctx, t, c.lab, "a", "delete", "namespace", name)
	}
}

// awaitOverlayPort waits until the links of liqonet on a node have that UDP port alone. A link is made anew with
// another port: for a moment there is none.
func awaitOverlayPort(ctx context.Context, t *testing.T, l *lab.Lab, node, port string) {
	t.Helper()
	var links string
	await(ctx, t, func() bool {
		out, err := l.NodeExec(ctx, node, "sh", "-c", "ip -o -d link | grep 'lqn-.*dstport' || true")
		require.NoError(t, err)
		links = string(out)
		return links != "" && strings.Count(links, "dstport "+port+" ") == strings.Count(links, "dstport ")
	}, func() string { return links })
}

// podSettings are flags that every pod of liqonet in cluster b follows.
var podSettings = []string{
	"--pod-labels", "team=network", "--pod-annotations", "example.com/note=a, b", "--requests", "cpu=20m", "--limits", "memory=300Mi",
	"--priority-class", "system-cluster-critical", "--gateway-node-selector", "kubernetes.io/hostname=b-2",
	"--gateway-toleration", "edge:NoSchedule", "--image-pull-secret", "registry",
}

// testPodSettings checks pods and the Service in cluster b.
func testPodSettings(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	for component, want := range map[string]string{
		"fabric":  "network|a, b|20m|300Mi|system-cluster-critical|registry",
		"gateway": "network|a, b|20m|300Mi|system-cluster-critical|registry",
	} {
		got := kubectl(ctx, t, l, "b", "-n", "liqonet", "get", "pods", "-l", "liqonet.io/component="+component, "-o",
			`jsonpath={range .items[*]}{.metadata.labels.team}|{.metadata.annotations.example\.com/note}|`+
				`{.spec.containers[0].resources.requests.cpu}|{.spec.containers[0].resources.limits.memory}|`+
				`{.spec.priorityClassName}|{.spec.imagePullSecrets[0].name}{"\n"}{end}`)
		for line := range strings.Lines(got) {
			if strings.TrimSpace(line) != want {
				t.Errorf("a pod of %s has %q, want %q", component, line, want)
			}
		}
		if got == "" {
			t.Errorf("no pods of %s", component)
		}
	}
	place := kubectl(ctx, t, l, "b", "-n", "liqonet", "get", "pods", "-l", "liqonet.io/component=gateway", "-o",
		`jsonpath={.items[*].spec.nodeName} {.items[*].spec.tolerations[?(@.key=="edge")].effect}`)
	if place != "b-2 NoSchedule" {
		t.Errorf("the gateway's node and toleration are %q", place)
	}
	annotation := kubectl(ctx, t, l, "b", "-n", "liqonet", "get", "service", "gateway-a", "-o", `jsonpath={.metadata.annotations.example\.com/internal}`)
	if annotation != "yes, in net-1" {
		t.Errorf("the Service has the annotation %q", annotation)
	}
}

// wantEndpoint waits until the gateway of a cluster reaches the other at that address.
func (c liqoctl) wantEndpoint(ctx context.Context, t *testing.T, cluster string, want netip.Addr) {
	t.Helper()
	c.awaitText(ctx, t, cluster, " "+want.String()+":")
}
