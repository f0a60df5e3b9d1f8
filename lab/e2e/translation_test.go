package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	translationHost = "translation.liqonet.svc"
	serviceAccount  = "/var/run/secrets/kubernetes.io/serviceaccount/" // what every pod has, for the API server
)

// asking is a request of a pod of cluster a to the translation service.
type asking struct {
	pod, ca, token string // files in the pod; no token: ""
	to             string // address of the service
}

// ask returns the response of the service, or the reason of a refusal.
func (q asking) ask(ctx context.Context, c liqoctl, path string, more ...string) (string, error) {
	args := []string{"exec", q.pod, "--", "/bin/workload", "ask", "-ca", q.ca, "-to", q.to}
	if q.token != "" {
		args = append(args, "-token", q.token)
	}
	out, err := c.lab.Kubectl(ctx, "a", append(append(args, more...), "https://"+translationHost+path)...)
	return string(out), err
}

// testTranslationService sends requests from pods of cluster a to its translation service, as in docs/services.md, and
// compares the responses with liqoctl's. Peer c is disconnected in between, and the service removed at the end.
func (c liqoctl) testTranslationService(ctx context.Context, t *testing.T) {
	mirror := c.startTranslation(ctx, t)
	t.Run("it answers as liqoctl does", func(t *testing.T) { c.testServiceAnswers(ctx, t, mirror) })
	t.Run("it refuses clients without the right", func(t *testing.T) { c.testServiceRefuses(ctx, t, mirror) })
	t.Run("it translates EndpointSlices", func(t *testing.T) { c.testServiceSlices(ctx, t, mirror) })
	t.Run("it follows the peerings", func(t *testing.T) {
		const path = "/v1/peers/c/import?address=10.244.0.7"
		if out, err := mirror.ask(ctx, c, path); err != nil {
			t.Fatal(out, err)
		}
		c.must(ctx, t, "network", "disconnect", "--context", "a", "--remote-context", "c")
		last := ""
		await(ctx, t, func() bool {
			out, err := mirror.ask(ctx, c, path)
			last = fmt.Sprint(out, err)
			return strings.Contains(last, `"reason":"unknown-peer"`)
		}, func() string { return last })
	})
	t.Run("it is removed", func(t *testing.T) {
		c.must(ctx, t, "network", "init", "--context", "a", "--translation=false")
		left := kubectl(ctx, t, c.lab, "a", "get", "deployments,services,secrets,configmaps,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings",
			"-A", "-l", "liqonet.io/component=translation", "-o", "name")
		if left != "" {
			t.Errorf("left:\n%s", left)
		}
	})
}

// startTranslation installs the service, and its client pods.
func (c liqoctl) startTranslation(ctx context.Context, t *testing.T) asking {
	t.Helper()
	var installed struct {
		Changed bool
		Cluster struct{ Translation string }
	}
	out := c.must(ctx, t, "network", "init", "--context", "a", "--translation", "-o", "json")
	if err := json.Unmarshal([]byte(out), &installed); err != nil || installed.Cluster.Translation != "https://"+translationHost {
		t.Fatalf("%v in %s", err, out)
	}
	if out := c.must(ctx, t, "network", "init", "--context", "a", "--translation"); !strings.Contains(out, "nothing changed") {
		t.Errorf("again: %s", out)
	}
	c.awaitText(ctx, t, "a", "translation: https://"+translationHost+", 1/1 pods ready")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	trusted := kubectl(ctx, t, c.lab, "a", "-n", "liqonet", "get", "configmap", "translation-ca", "-o", `jsonpath={.data.ca\.crt}`)
	if err := os.WriteFile(ca, []byte(trusted), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(ctx, t, c.lab, "a", "create", "configmap", "liqonet-ca", "--from-file="+ca)
	kubectl(ctx, t, c.lab, "a", "apply", "-f", "testdata/mirror.yaml")
	kubectl(ctx, t, c.lab, "a", "-n", "liqonet", "create", "rolebinding", "mirror", "--role=translation-client", "--serviceaccount=default:mirror")
	kubectl(ctx, t, c.lab, "a", "wait", "--for=condition=Ready", "pod", "-l", "app=mirror", "--timeout="+patience.String())
	address := kubectl(ctx, t, c.lab, "a", "-n", "liqonet", "get", "service", "translation", "-o", "jsonpath={.spec.clusterIP}")
	return asking{pod: "mirror", ca: "/liqonet/ca.crt", token: "/liqonet/token", to: address + ":443"}
}

// testServiceAnswers translates addresses of pods and nodes of every cluster, in every direction, with both.
func (c liqoctl) testServiceAnswers(ctx context.Context, t *testing.T, mirror asking) {
	here := podOn(ctx, t, c.lab, "a", nodesOf(ctx, t, c.lab, "a")[0]).IP
	there := podOn(ctx, t, c.lab, "b", nodesOf(ctx, t, c.lab, "b")[0]).IP
	called := c.translate(ctx, t, "--context", "a", "--peer", "b", "--import", there)
	exported := c.translate(ctx, t, "--context", "a", "--peer", "b", here)
	for path, flags := range map[string][]string{
		"/v1/peers/b/export?address=" + here:                         {"--peer", "b", here},
		"/v1/peers/b/export?address=10.80.0.1":                       {"--peer", "b", "10.80.0.1"},
		"/v1/peers/b/export?address=" + exposedToB:                   {"--peer", "b", exposedToB},
		"/v1/peers/b/exported-from?address=" + exported:              {"--peer", "b", "--reverse", exported},
		"/v1/peers/b/import?address=" + there + "&address=10.70.0.1": {"--peer", "b", "--import", there, "10.70.0.1"},
		"/v1/peers/b/imported-from?address=" + called:                {"--peer", "b", "--import", "--reverse", called},
		"/v1/peers/c/import?address=" + there:                        {"--peer", "c", "--import", there},
		"/v1/whose?address=" + called:                                {called},
	} {
		out, err := mirror.ask(ctx, c, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		want := c.translate(ctx, t, append([]string{"--context", "a", "-o", "json"}, flags...)...)
		if !sameJSON(t, out, want) {
			t.Errorf("%s:\n%s\nwant as liqoctl says:\n%s", path, out, want)
		}
	}
	out, err := mirror.ask(ctx, c, "/v1/whose?address=192.0.2.1")
	if err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(out+err.Error(), `"reason":"unmapped"`) {
		t.Errorf("an address that belongs nowhere: %s %v", out, err)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &values[i]); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	return fmt.Sprint(values[0]) == fmt.Sprint(values[1])
}

// testServiceRefuses sends requests that each differ from an authorized one in one respect.
func (c liqoctl) testServiceRefuses(ctx context.Context, t *testing.T, mirror asking) {
	for what, q := range map[string]struct {
		change func(*asking)
		want   string
	}{
		"a ServiceAccount without the right":     {func(q *asking) { q.pod = "stranger" }, "403"},
		"no token":                               {func(q *asking) { q.token = "" }, "401"},
		"a token for the API server":             {func(q *asking) { q.token = serviceAccount + "token" }, "401"},
		"what is no token":                       {func(q *asking) { q.token = q.ca }, "4"},
		"a client that trusts another authority": {func(q *asking) { q.ca = serviceAccount + "ca.crt" }, "certificate"},
	} {
		asker := mirror
		q.change(&asker)
		if out, err := asker.ask(ctx, c, "/v1/peers/b/import?address=10.244.0.7"); err == nil || !strings.Contains(err.Error(), q.want) {
			t.Errorf("%s: %s %v, want %s", what, out, err, q.want)
		}
	}
	asker := mirror
	asker.token = ""
	if out, err := asker.ask(ctx, c, "/openapi.json"); err != nil || !strings.Contains(out, `"openapi": "3`) {
		t.Errorf("the document, without a token: %.80s %v", out, err)
	}
}

// testServiceSlices compares a slice that the service translates with that of liqoctl.
func (c liqoctl) testServiceSlices(ctx context.Context, t *testing.T, mirror asking) {
	name := kubectl(ctx, t, c.lab, "a", "get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "jsonpath={.items[0].metadata.name}")
	slice := kubectl(ctx, t, c.lab, "a", "get", "endpointslice", name, "-o", "json")
	file := filepath.Join(t.TempDir(), "slice.json")
	if err := os.WriteFile(file, []byte(slice), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := mirror.ask(ctx, c, "/v1/peers/b/export/endpointslice", "-body", slice)
	if err != nil {
		t.Fatal(out, err)
	}
	want := c.must(ctx, t, "ipam", "translate", "--context", "a", "--peer", "b", "--endpointslice", "-o", "json", "-f", file)
	if !sameJSON(t, out, want) {
		t.Errorf("%s\nwant as liqoctl says:\n%s", out, want)
	}
}
