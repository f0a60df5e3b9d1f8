package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
)

// testLevels runs commands of a higher level: errors list all missing rights, and hints name the command that grants
// them.
func testLevels(ctx context.Context, t *testing.T, u users) {
	for _, try := range []struct {
		who  liqoctl
		args []string
		lack string
	}{
		{u.looker, []string{"network", "disconnect", "--context", "a", "--remote-context", "b"}, "delete secrets in namespace liqonet"},
		{u.looker, []string{"network", "connect", "--context", "a", "--remote-context", "b", "--gw-server-service-type", "NodePort"}, "create secrets"},
		{u.connector, []string{"network", "init", "--context", "a"}, "delete namespaces liqonet"},
		{u.looker, []string{"network", "expose", "192.0.2.17", "--context", "a", "--peer", "b"}, "patch configmaps in namespace liqonet"},
		{u.connector, []string{"network", "reset", "--context", "a", "--force"}, "delete daemonsets.apps"},
	} {
		out, said, code := try.who.run(ctx, t, try.args...)
		if code != 1 || !strings.Contains(said, try.lack) || !strings.Contains(said, "liqoctl network role") {
			t.Errorf("%v: exit code %d, want 1 and %q in\n%s%s", try.args, code, try.lack, out, said)
		}
	}
}

// testSecondInstallation runs commands with a namespace other than the installation's, in which the users have rights.
func testSecondInstallation(ctx context.Context, t *testing.T, u users) {
	connect := []string{"network", "connect", "--context", "a", "--remote-context", "b", "--gw-server-service-type", "NodePort"}
	for _, try := range []struct {
		who  liqoctl
		args []string
	}{
		{u.admin, []string{"network", "init", "--context", "a"}},
		{u.installer, []string{"network", "init", "--context", "a"}},
		{u.connector, connect},
		{u.installer, []string{"network", "reset", "--verify-only", "--context", "a"}},
	} {
		out, said, code := try.who.run(ctx, t, append(try.args, "-n", "other")...)
		if code != 1 || !strings.Contains(said, "liqonet is installed in namespace liqonet of cluster") || !strings.Contains(said, "\nhint: ") {
			t.Errorf("%v -n other: exit code %d\n%s%s", try.args, code, out, said)
		}
	}
}

// testWatch runs status --watch as a user of level view, until a second answer.
func testWatch(ctx context.Context, t *testing.T, c liqoctl) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.path, "network", "status", "--watch", "-o", "json", "--context", "a")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	answers := json.NewDecoder(out)
	for i := range 2 {
		var answer struct{ Peerings []struct{ State string } }
		if err := answers.Decode(&answer); err != nil || len(answer.Peerings) == 0 {
			t.Errorf("answer %d: %+v, %v", i+1, answer, err)
		}
	}
	cancel()
	_ = cmd.Wait() // it was killed
}

// lease has the fields of a node's Lease that tests use.
type lease struct {
	Metadata struct {
		Name            string
		Labels          map[string]string
		OwnerReferences []struct{ UID string }
	}
	Spec struct{ HolderIdentity string }
}

// testOwnLease uses the token of a node helper to write its own Lease, and tries forbidden requests.
func testOwnLease(ctx context.Context, t *testing.T, l *lab.Lab) {
	pods := kubectl(ctx, t, l, "a", "-n", "liqonet", "get", "pods", "-l", "liqonet.io/component=fabric",
		"-o", `jsonpath={range .items[*]}{.spec.nodeName}={.metadata.name} {end}`)
	podOf := make(map[string]string)
	for pair := range strings.FieldsSeq(pods) {
		node, pod, _ := strings.Cut(pair, "=")
		podOf[node] = pod
	}
	var leases struct{ Items []lease }
	text := kubectl(ctx, t, l, "a", "-n", "liqonet", "get", "leases", "-l", "liqonet.io/component=node", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(text), &leases))
	own := make(map[string]lease)
	for _, one := range leases.Items {
		own[one.Spec.HolderIdentity] = one
	}
	const path = "/apis/coordination.k8s.io/v1/namespaces/liqonet/leases"
	mine, other := own["a-1"], own["a-2"]
	a := helperAccount(ctx, t, l, "a", "node", podOf["a-1"])
	note := `{"metadata":{"annotations":{"test":"x"}}}`
	a.want(ctx, t, http.StatusOK, http.MethodPatch, path+"/"+mine.Metadata.Name, note)
	a.want(ctx, t, http.StatusOK, http.MethodPatch, path+"/"+mine.Metadata.Name, `{"metadata":{"annotations":{"test":null}}}`)
	a.want(ctx, t, http.StatusForbidden, http.MethodPatch, path+"/"+other.Metadata.Name, note)
	a.want(ctx, t, http.StatusForbidden, http.MethodPatch, path+"/"+other.Metadata.Name, `{"spec":{"holderIdentity":"a-1"}}`)
	a.want(ctx, t, http.StatusForbidden, http.MethodPatch, path+"/"+mine.Metadata.Name, `{"spec":{"holderIdentity":"a-2"}}`)
	a.want(ctx, t, http.StatusForbidden, http.MethodPatch, path+"/"+mine.Metadata.Name, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"a-2","uid":"`+other.Metadata.OwnerReferences[0].UID+`"}]}}`)
	// It may hold one with an even number and one with an odd one.
	mineIs := func(digits string) bool {
		return strings.ContainsAny(mine.Metadata.Name[len(mine.Metadata.Name)-1:], digits)
	}
	for _, try := range []struct {
		holder, name string
		taken        bool
	}{{"a-1", "node-9998", !mineIs("02468")}, {"a-1", "node-9999", mineIs("02468")}, {"a-2", "node-9999", false}} {
		code := http.StatusForbidden
		if try.taken {
			code = http.StatusCreated
		}
		a.want(ctx, t, code, http.MethodPost, path+"?dryRun=All", fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"liqonet.io/component":"node","liqonet.io/node":%q}},"spec":{"holderIdentity":%q}}`,
			try.name, own[try.holder].Metadata.Labels["liqonet.io/node"], try.holder))
	}
	a.want(ctx, t, http.StatusForbidden, http.MethodDelete, path+"/"+mine.Metadata.Name, "")
	for _, foreign := range []string{
		"/api/v1/namespaces/liqonet/secrets", "/api/v1/namespaces/liqonet/secrets/peering-b", "/api/v1/secrets",
		"/api/v1/namespaces/kube-system/configmaps", "/apis/apps/v1/namespaces/liqonet/daemonsets",
	} {
		a.want(ctx, t, http.StatusForbidden, http.MethodGet, foreign, "")
	}
	a.want(ctx, t, http.StatusForbidden, http.MethodPatch, "/api/v1/namespaces/liqonet/configmaps/peering-b", note)
	a.want(ctx, t, http.StatusForbidden, http.MethodPatch, "/api/v1/nodes/a-2", note)
	testEvents(ctx, t, l, a, "a-1.7", map[event]int{
		{"Lease", mine.Metadata.Name, "DriftRestored"}: http.StatusCreated, {"ConfigMap", "status-b", "GatewayLost"}: http.StatusCreated,
		{"Pod", podOf["a-1"], "Failed"}: http.StatusForbidden, {"ConfigMap", "status-b", "FailedCreate"}: http.StatusForbidden,
	})
}

// event is what a helper may say, or not.
type event struct{ kind, name, reason string }

// testEvents tries to create events of that name, and to change those of others.
func testEvents(ctx context.Context, t *testing.T, l *lab.Lab, a account, name string, tries map[event]int) {
	const path = "/api/v1/namespaces/liqonet/events"
	kubectl(ctx, t, l, "a", "-n", "liqonet", "delete", "event", name, "--ignore-not-found") // of the helper itself
	for e, code := range tries {
		a.want(ctx, t, code, http.MethodPost, path+"?dryRun=All", fmt.Sprintf(`{"metadata":{"name":%q},"reason":%q,"message":"m","type":"Normal",
			"involvedObject":{"kind":%q,"name":%q,"namespace":"liqonet"}}`, name, e.reason, e.kind, e.name))
	}
	a.want(ctx, t, http.StatusForbidden, http.MethodGet, path, "")
	a.want(ctx, t, http.StatusForbidden, http.MethodPatch, path+"/any", `{"message":"x"}`)
	a.want(ctx, t, http.StatusForbidden, http.MethodPost, "/api/v1/namespaces/default/events?dryRun=All", `{"metadata":{"generateName":"test."},"involvedObject":{"namespace":"default"}}`)
}

// testGatewayAccount uses the token of a gateway for allowed and forbidden requests.
func testGatewayAccount(ctx context.Context, t *testing.T, l *lab.Lab) {
	pod := kubectl(ctx, t, l, "a", "-n", "liqonet", "get", "pods", "-l", "liqonet.io/component=gateway", "-o", "jsonpath={.items[0].metadata.name}")
	a := helperAccount(ctx, t, l, "a", "gateway-b", pod)
	const configMaps, note = "/api/v1/namespaces/liqonet/configmaps", `{"metadata":{"annotations":{"test":null}}}`
	for name, code := range map[string]int{
		"gateway-b": http.StatusOK, "status-b": http.StatusOK, "peering-b": http.StatusForbidden,
		"fabric": http.StatusForbidden, "ipam": http.StatusForbidden, "gateway-c": http.StatusForbidden, "status-c": http.StatusForbidden,
	} {
		a.want(ctx, t, code, http.MethodPatch, configMaps+"/"+name, note)
	}
	for path, code := range map[string]int{
		configMaps + "?fieldSelector=metadata.name%3Dpeering-c": http.StatusForbidden,
		configMaps: http.StatusForbidden, "/api/v1/namespaces/liqonet/secrets": http.StatusForbidden,
		"/api/v1/namespaces/liqonet/secrets/peering-b": http.StatusForbidden, "/api/v1/nodes": http.StatusForbidden, "/api/v1/pods": http.StatusForbidden,
	} {
		a.want(ctx, t, code, http.MethodGet, path, "")
	}
	a.want(ctx, t, http.StatusForbidden, http.MethodPatch, "/apis/coordination.k8s.io/v1/namespaces/liqonet/leases/x", note)
	testEvents(ctx, t, l, a, "status-b.7", map[event]int{
		{"ConfigMap", "status-b", "StateChanged"}: http.StatusCreated, {"ConfigMap", "status-c", "StateChanged"}: http.StatusForbidden,
		{"Pod", pod, "StateChanged"}: http.StatusForbidden, {"ConfigMap", "status-b", "FailedCreate"}: http.StatusForbidden,
	})
}

// testPodPolicy tries to create pods in liqonet's namespace with more privileges than a helper.
func testPodPolicy(ctx context.Context, t *testing.T, l *lab.Lab) {
	const good = `{"name":"c","image":"x","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"],"add":["NET_ADMIN"]}}}`
	for name, c := range map[string]struct {
		spec string
		want string // in the refusal; "": taken
	}{
		"as a gateway":              {`{"containers":[` + good + `],"volumes":[{"name":"tun","hostPath":{"path":"/dev/net/tun","type":"CharDevice"}}]}`, ""},
		"a device of any type":      {`{"containers":[` + good + `],"volumes":[{"name":"tun","hostPath":{"path":"/dev/net/tun"}}]}`, "no file of their node"},
		"privileged":                {`{"containers":[{"name":"c","image":"x","securityContext":{"privileged":true}}]}`, "no capability but NET_ADMIN"},
		"another right":             {`{"containers":[` + strings.Replace(good, "NET_ADMIN", "SYS_ADMIN", 1) + `]}`, "no capability but NET_ADMIN"},
		"escalation":                {`{"containers":[{"name":"c","image":"x"}]}`, "no capability but NET_ADMIN"},
		"rights of every container": {`{"containers":[` + strings.Replace(good, `"drop":["ALL"],`, "", 1) + `]}`, "no capability but NET_ADMIN"},
		"a port of the node":        {`{"containers":[` + strings.Replace(good, `"image"`, `"ports":[{"containerPort":80,"hostPort":10250}],"image"`, 1) + `]}`, "no port of their node"},
		"in an init":                {`{"containers":[` + good + `],"initContainers":[{"name":"i","image":"x","securityContext":{"privileged":true}}]}`, "no capability but NET_ADMIN"},
		"a node's files":            {`{"containers":[` + good + `],"volumes":[{"name":"root","hostPath":{"path":"/"}}]}`, "no file of their node"},
		"a storage driver's files":  {`{"containers":[` + good + `],"volumes":[{"name":"v","csi":{"driver":"x"}}]}`, "no storage"},
		"a claim of storage":        {`{"containers":[` + good + `],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"x"}}]}`, "no storage"},
		"files of the cluster":      {`{"containers":[` + good + `],"volumes":[{"name":"a","configMap":{"name":"x"}},{"name":"b","emptyDir":{}},{"name":"c","secret":{"secretName":"x"}}]}`, ""},
		"a node's network":          {`{"hostNetwork":true,"containers":[` + good + `]}`, "only a DaemonSet"},
		"a node's pids":             {`{"hostPID":true,"containers":[` + good + `]}`, "do not share processes"},
	} {
		file := filepath.Join(t.TempDir(), "pod.json")
		text := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"tried","namespace":"liqonet"},"spec":` + c.spec + `}`
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		out, err := l.Kubectl(ctx, "a", "create", "--dry-run=server", "-f", file)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %s, %v; want %q", name, out, err, c.want)
		}
	}
}
