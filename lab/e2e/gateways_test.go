package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab"
)

// gatewayState has the fields of a gateway in `network status -o json` that tests use.
type gatewayState struct {
	Pod     string
	Tunnels []struct{ State string }
}

// testGateways gives the peering two gateways on each side while pods talk, takes one away by force, and one by its
// number.
func testGateways(ctx context.Context, t *testing.T, l *lab.Lab, u users, conn connection) {
	// Gateways may have measured the path while testPaths lost large packets.
	// flannel's VXLAN in a takes 50 bytes.
	for cluster, paths := range map[string]string{"a": "1450 between gateways, 1450 to nodes", "b": "1450 between gateways, 1500 to nodes"} {
		u.looker.awaitText(ctx, t, cluster, paths)
	}
	u.connector.defaults = true // what flags leave out stays as it is
	several := []string{"--gateways", "2", "--remote-gateways", "2", "--update"}
	if scaled := u.connector.connect(ctx, t, several...); !scaled.Changed {
		t.Error("two gateways a side, and nothing changed")
	}
	if again := u.connector.connect(ctx, t); again.Changed {
		t.Error("without the flags the number of gateways changes")
	}
	awaitGateways(ctx, t, u.looker, "a", 2, 4)
	lost := awaitGateways(ctx, t, u.looker, "b", 2, 4)[0]
	testSecondGatewayAccount(ctx, t, l)

	kubectl(ctx, t, l, "b", "-n", "liqonet", "delete", "pod", lost.Pod, "--force", "--grace-period=0", "--wait=false")
	testEveryPod(ctx, t, l, conn)
	await(ctx, t, func() bool { return awaitGateways(ctx, t, u.looker, "b", 2, 4)[0].Pod != lost.Pod }, func() string {
		return "gateway 1 of b is still pod " + lost.Pod
	})

	u.connector.connect(ctx, t, "--gateways", "1", "--update")
	awaitGateways(ctx, t, u.looker, "a", 1, 2)
	awaitGateways(ctx, t, u.looker, "b", 2, 2)
	testEveryPod(ctx, t, l, conn)
	left := kubectl(ctx, t, l, "a", "-n", "liqonet", "get", "all,configmaps,secrets,serviceaccounts,roles,rolebindings,poddisruptionbudgets", "-o", "name")
	if strings.Contains(left, "2-b") || strings.Contains(left, "poddisruptionbudget") {
		t.Errorf("left of gateway 2 of a:\n%s", left)
	}
	testRotation(ctx, t, l, u)
}

// testRotation replaces the keys of a peering with one gateway in a and two in b, and changes nothing else.
func testRotation(ctx context.Context, t *testing.T, l *lab.Lab, u users) {
	var rotation struct {
		Gateways []struct{ Cluster, PublicKey string }
	}
	out := u.connector.must(ctx, t, "network", "rotate-keys", "--context", "a", "--remote-context", "b", "-o", "json")
	if err := json.Unmarshal([]byte(out), &rotation); err != nil || len(rotation.Gateways) != 3 {
		t.Fatalf("rotation: %v\n%s", err, out)
	}
	for cluster, peer := range map[string]string{"a": "b", "b": "a"} {
		record := kubectl(ctx, t, l, peer, "-n", "liqonet", "get", "configmap", "peering-"+cluster, "-o", "jsonpath={.data.record}")
		for _, g := range rotation.Gateways {
			if g.Cluster == cluster && !strings.Contains(record, g.PublicKey) {
				t.Errorf("the record of %s has no key %s of %s:\n%s", peer, g.PublicKey, cluster, record)
			}
		}
	}
	awaitGateways(ctx, t, u.looker, "a", 1, 2)
	awaitGateways(ctx, t, u.looker, "b", 2, 2)
	if again := u.connector.connect(ctx, t); again.Changed {
		t.Error("after a rotation of keys, connect changes the peering")
	}
}

// awaitGateways waits until the peering of a cluster is healthy, with so many gateways and healthy tunnels.
func awaitGateways(ctx context.Context, t *testing.T, c liqoctl, cluster string, count, tunnels int) (gateways []gatewayState) {
	t.Helper()
	var said string
	var code, healthy int
	await(ctx, t, func() bool {
		var out string
		out, said, code = c.run(ctx, t, "network", "status", "--context", cluster, "-o", "json")
		var answer struct {
			Peerings []struct{ Gateways []gatewayState }
		}
		if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 0 || len(answer.Peerings) != 1 {
			return false
		}
		gateways, healthy = answer.Peerings[0].Gateways, 0
		for _, g := range gateways {
			for _, t := range g.Tunnels {
				if t.State == "healthy" {
					healthy++
				}
			}
		}
		return len(gateways) == count && healthy == tunnels
	}, func() string {
		return fmt.Sprintf("status of %s: exit code %d, %d healthy tunnels, want %d of %d gateways: %+v\n%s", cluster, code, healthy, tunnels, count, gateways, said)
	})
	return gateways
}

// testSecondGatewayAccount uses the token of gateway 2 to write its own records, and tries those of gateway 1: also
// with more rights than its role gives.
func testSecondGatewayAccount(ctx context.Context, t *testing.T, l *lab.Lab) {
	pod := kubectl(ctx, t, l, "a", "-n", "liqonet", "get", "pods", "-l", "liqonet.io/gateway=2", "-o", "jsonpath={.items[0].metadata.name}")
	a := helperAccount(ctx, t, l, "a", "gateway2-b", pod)
	const configMaps, nothing = "/api/v1/namespaces/liqonet/configmaps/", `{"metadata":{"annotations":{"test":null}}}`
	try := func(wanted map[string]int) {
		t.Helper()
		for name, code := range wanted {
			a.want(ctx, t, code, http.MethodPatch, configMaps+name, nothing)
		}
	}
	try(map[string]int{
		"gateway2-b": http.StatusOK, "status2-b": http.StatusOK,
		"gateway-b": http.StatusForbidden, "status-b": http.StatusForbidden, "peering-b": http.StatusForbidden, "gateway3-b": http.StatusForbidden,
	})
	for _, label := range []string{`"liqonet.io/gateway":"1"`, `"liqonet.io/gateway":null`, `"liqonet.io/peering":"c"`, `"other":"x"`} {
		a.want(ctx, t, http.StatusForbidden, http.MethodPatch, configMaps+"gateway2-b", `{"metadata":{"labels":{`+label+`}}}`)
	}
	const given = "too-much"
	kubectl(ctx, t, l, "a", "-n", "liqonet", "create", "role", given, "--verb=patch", "--resource=configmaps")
	kubectl(ctx, t, l, "a", "-n", "liqonet", "create", "rolebinding", given, "--role", given, "--serviceaccount", "liqonet:gateway2-b")
	await(ctx, t, func() bool { // until the API server knows
		out, err := l.Kubectl(ctx, "a", "-n", "liqonet", "auth", "can-i", "patch", "configmaps/peering-b", "--as", "system:serviceaccount:liqonet:gateway2-b")
		return err == nil && strings.HasPrefix(string(out), "yes")
	}, func() string { return "gateway 2 is not given the right to patch ConfigMaps" })
	try(map[string]int{
		"gateway2-b": http.StatusOK, "status2-b": http.StatusOK,
		"gateway-b": http.StatusForbidden, "status-b": http.StatusForbidden, "peering-b": http.StatusForbidden,
	})
	kubectl(ctx, t, l, "a", "-n", "liqonet", "delete", "role,rolebinding", given)
}
