package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab/require"
)

// testReflection connects clusters a and b, which are connected already, with c, and compares the addresses of `ipam
// translate` with those of packets. a exposes a host to b.
func testReflection(ctx context.Context, t *testing.T, u users) {
	c := u.connector
	connector := c
	connector.defaults = true // --remote-gateways is of two clusters
	many := []string{"network", "connect", "--contexts", "a,b,c", "--topology", "hub=c", "--gw-server-service-type", "NodePort", "--gateways", "1"}
	if said := connector.must(ctx, t, many...); !strings.Contains(said, "Peerings: 2 connected, 0 unchanged, ") {
		t.Errorf("connect says:\n%s", said)
	}
	if said := connector.must(ctx, t, many...); !strings.Contains(said, "Peerings: 0 connected, 2 unchanged, ") {
		t.Errorf("connect again says:\n%s", said)
	}
	for _, from := range []string{"a", "b", "c"} {
		for _, to := range []string{"a", "b", "c"} {
			if from != to {
				t.Run("pods of "+from+" reach pods of "+to+" as translated", func(t *testing.T) { c.testTranslated(ctx, t, from, to) })
			}
		}
	}
	t.Run("an address that belongs nowhere is refused", func(t *testing.T) {
		out, said, code := c.run(ctx, t, "ipam", "translate", "--context", "a", "--to", "b", "192.0.2.1")
		if code != 1 || out != "" || !strings.Contains(said, "192.0.2.1") || !strings.Contains(said, "hint:") {
			t.Errorf("exit code %d, %q\n%s", code, out, said)
		}
	})
	kubectl(ctx, t, c.lab, "a", "apply", "-f", "testdata/web.yaml")
	for _, peer := range []string{"b", "c"} {
		t.Run("a Service of a works in "+peer, func(t *testing.T) { c.testReflected(ctx, t, "a", peer) })
	}
	for _, cluster := range []string{"a", "b"} {
		c.must(ctx, t, "network", "disconnect", "--context", cluster, "--remote-context", "c")
	}
}

// translate asks with the flags that are given for one address.
func (c liqoctl) translate(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(c.must(ctx, t, append([]string{"ipam", "translate"}, args...)...))
}

// testTranslated sends requests from every pod of a cluster to every pod of another, to the address that either cluster
// returns, and compares the source address.
func (c liqoctl) testTranslated(ctx context.Context, t *testing.T, from, to string) {
	for _, source := range nodesOf(ctx, t, c.lab, from) {
		sender := podOn(ctx, t, c.lab, from, source)
		as := c.translate(ctx, t, "--context", from, "--to", to, sender.IP)
		for _, target := range nodesOf(ctx, t, c.lab, to) {
			receiver := podOn(ctx, t, c.lab, to, target)
			called := c.translate(ctx, t, "--context", from, "--from", to, receiver.IP)
			if exported := c.translate(ctx, t, "--context", to, "--to", from, receiver.IP); exported != called {
				t.Errorf("pod %s of %s: %s by what %s tells, %s by what %s tells", receiver.IP, to, called, from, exported, to)
			}
			out := inPod(ctx, t, c.lab, from, sender, "get", "http://"+called+":8080/")
			if want := fmt.Sprintf("node=%s ip=%s from=%s:", target, receiver.IP, as); !strings.Contains(out, want) {
				t.Errorf("%s from %s: %q, want %q in it", called, source, out, want)
			}
			c.testWhose(ctx, t, from, called, owned{Address: called, Translated: receiver.IP, Peer: to, Kind: "pod"})
		}
		c.testWhose(ctx, t, to, as, owned{Address: as, Translated: sender.IP, Peer: from, Kind: "pod"})
	}
}

// owned is an answer of `ipam translate -o json`.
type owned struct{ Address, Translated, Peer, Kind string }

func (c liqoctl) testWhose(ctx context.Context, t *testing.T, cluster, address string, want owned) {
	t.Helper()
	var answer struct{ Addresses []owned }
	out := c.translate(ctx, t, "--context", cluster, "-o", "json", address)
	if err := json.Unmarshal([]byte(out), &answer); err != nil || !slices.Equal(answer.Addresses, []owned{want}) {
		t.Errorf("whose is %s in %s: %v, %s, want %+v", address, cluster, err, out, want)
	}
}

// testReflected copies Service web with the commands of docs/services.md, and requests its ClusterIP in the peer
// from a pod and from the node itself until every pod of the Service has answered.
func (c liqoctl) testReflected(ctx context.Context, t *testing.T, from, to string) {
	nodes := nodesOf(ctx, t, c.lab, from)
	c.reflect(ctx, t, from, to, len(nodes))
	address := kubectl(ctx, t, c.lab, to, "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	node := nodesOf(ctx, t, c.lab, to)[0]
	asker := podOn(ctx, t, c.lab, to, node)
	podIs := c.translate(ctx, t, "--context", to, "--to", from, asker.IP)
	kind := func(source string) string {
		var answer struct{ Addresses []owned }
		out := c.translate(ctx, t, "--context", from, "-o", "json", source)
		if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Addresses[0].Peer != to {
			t.Errorf("source %s: %v, %s", source, err, out)
		}
		return answer.Addresses[0].Kind
	}
	for name, ask := range map[string]func() ([]byte, error){
		"a pod": func() ([]byte, error) {
			return c.lab.Kubectl(ctx, to, "exec", asker.Name, "--", "/bin/workload", "get", "http://"+address+"/")
		},
		"a node": func() ([]byte, error) { return c.lab.NodeExec(ctx, node, "workload", "get", "http://"+address+"/") },
	} {
		t.Run("from "+name, func(t *testing.T) {
			sources := map[string]string{} // by node that answered
			var last string
			await(ctx, t, func() bool {
				out, err := ask()
				last = fmt.Sprintf("%s %v, answered so far: %v", out, err, sources)
				if _, rest, ok := strings.Cut(string(out), "node="); ok && err == nil {
					answered, _, _ := strings.Cut(rest, " ")
					_, source, _ := strings.Cut(rest, "from=")
					sources[answered], _, _ = strings.Cut(source, ":")
				}
				return len(sources) == len(nodes)
			}, func() string { return last })
			if got := slices.Sorted(maps.Keys(sources)); !slices.Equal(got, nodes) {
				t.Errorf("pods on %v answered, want %v", got, nodes)
			}
			for _, source := range sources {
				switch {
				case name == "a pod" && source != podIs:
					t.Errorf("the question came from %s, want %s", source, podIs)
				case name == "a node" && kind(source) != "node":
					t.Errorf("the question came from %s, a %s", source, kind(source))
				}
			}
		})
	}
}

// reflect copies Service web and its endpoints, once that many are ready, from one cluster to another.
func (c liqoctl) reflect(ctx context.Context, t *testing.T, from, to string, endpoints int) {
	t.Helper()
	ready := ""
	await(ctx, t, func() bool {
		ready = kubectl(ctx, t, c.lab, from, "get", "endpointslices", "-l", "kubernetes.io/service-name=web",
			"-o", "jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses[0]}")
		return len(strings.Fields(ready)) == endpoints
	}, func() string { return "endpoints that are ready: " + ready })
	dir := t.TempDir()
	here, there := filepath.Join(dir, "here.json"), filepath.Join(dir, "there.yaml")
	exported := kubectl(ctx, t, c.lab, from, "get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "json")
	require.NoError(t, os.WriteFile(here, []byte(exported), 0o600))
	translated := c.must(ctx, t, "ipam", "translate", "--context", from, "--to", to, "--endpointslice", "-f", here)
	require.NoError(t, os.WriteFile(there, []byte(translated), 0o600))
	kubectl(ctx, t, c.lab, to, "apply", "-f", "testdata/web-reflected.yaml", "-f", there)
}
