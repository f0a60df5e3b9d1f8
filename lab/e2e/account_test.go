package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
)

// kubeconfig is the part of the format that tests change.
type kubeconfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Clusters   []struct {
		Name    string `json:"name"`
		Cluster struct {
			Server    string `json:"server"`
			Authority []byte `json:"certificate-authority-data"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users    []kubeUser    `json:"users"`
	Contexts []kubeContext `json:"contexts"`
}

type kubeUser struct {
	Name string `json:"name"`
	User struct {
		Token string `json:"token"`
	} `json:"user"`
}

type kubeContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

// readKubeconfig reads a lab's kubeconfig, without its users.
func readKubeconfig(t *testing.T, l *lab.Lab) kubeconfig {
	t.Helper()
	text, err := os.ReadFile(l.Kubeconfig())
	require.NoError(t, err)
	var k kubeconfig
	require.NoError(t, yaml.Unmarshal(text, &k))
	k.Users, k.Contexts = nil, nil
	return k
}

// users are liqoctl as run by an administrator, and by one user of each level.
type users struct {
	admin, looker, connector, installer liqoctl
	roles                               string // file with the manifests of all but the administrator's
}

// users gives the printed roles to an account of each level, by the printed commands, in every cluster.
func (c liqoctl) users(ctx context.Context, t *testing.T, clusters ...string) users {
	t.Helper()
	documents := []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: " + people + "}\n"}
	for i := range levels {
		level := levels[len(levels)-1-i] // the last one brings the namespace of the others
		documents = append(documents,
			"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: "+level+", namespace: "+people+"}\n")
		role, said, code := c.run(ctx, t, "network", "role", level)
		if code != 0 || strings.Count(said, "USER") != 4 {
			t.Fatalf("exit code %d, said %s", code, said)
		}
		documents = append(documents, role)
		for line := range strings.Lines(said) {
			if command, ok := strings.CutPrefix(strings.TrimSpace(line), "kubectl "); ok {
				command = strings.ReplaceAll(command, "USER", "system:serviceaccount:"+people+":"+level)
				documents = append(documents, kubectl(ctx, t, c.lab, clusters[0], append(strings.Fields(command), "--dry-run=client", "-o", "yaml")...))
			}
		}
	}
	file := filepath.Join(t.TempDir(), "roles.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(documents, "---\n")), 0o600))
	for _, cluster := range clusters {
		kubectl(ctx, t, c.lab, cluster, "apply", "-f", file)
	}
	u := users{admin: c, looker: c.as(ctx, t, "view"), connector: c.as(ctx, t, "operate"), installer: c.as(ctx, t, "administer"), roles: file}
	for _, cluster := range clusters {
		var said string
		await(ctx, t, func() bool { // an API server learns of roles in its own time
			var code int
			_, said, code = u.installer.run(ctx, t, "network", "init", "--dry-run", "--context", cluster)
			return code == 0
		}, func() string { return "user of level administer in " + cluster + ":\n" + said })
	}
	return u
}

// atOnce runs a command that installs or removes liqonet in several clusters at once.
func (c liqoctl) atOnce(ctx context.Context, t *testing.T, command string, clusters ...string) {
	t.Helper()
	var all sync.WaitGroup
	for _, cluster := range clusters {
		all.Go(func() {
			if out, said, code := c.run(ctx, t, "network", command, "--context", cluster); code != 0 {
				t.Errorf("%s in %s: exit code %d\n%s%s", command, cluster, code, out, said)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// as is liqoctl, run by a user with the roles of a level and no others.
func (c liqoctl) as(ctx context.Context, t *testing.T, level string) liqoctl {
	t.Helper()
	k := readKubeconfig(t, c.lab)
	for _, cluster := range k.Clusters {
		var u kubeUser
		u.Name = cluster.Name
		u.User.Token = kubectl(ctx, t, c.lab, cluster.Name, "-n", people, "create", "token", level)
		var x kubeContext
		x.Name, x.Context.Cluster, x.Context.User = cluster.Name, cluster.Name, u.Name
		k.Users, k.Contexts = append(k.Users, u), append(k.Contexts, x)
	}
	text, err := yaml.Marshal(k)
	require.NoError(t, err)
	c.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(c.kubeconfig, text, 0o600))
	return c
}

// account sends requests to a cluster's API server with a token.
type account struct {
	server, token string
	client        *http.Client
}

// helperAccount has a token as the pod of a helper has it: bound to the pod, and so to its node.
func helperAccount(ctx context.Context, t *testing.T, l *lab.Lab, cluster, name, pod string) account {
	t.Helper()
	a := account{token: kubectl(ctx, t, l, cluster, "-n", "liqonet", "create", "token", name,
		"--bound-object-kind", "Pod", "--bound-object-name", pod)}
	for _, c := range readKubeconfig(t, l).Clusters {
		if c.Name == cluster {
			trusted := x509.NewCertPool()
			trusted.AppendCertsFromPEM(c.Cluster.Authority)
			a.server = c.Cluster.Server
			a.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
		}
	}
	return a
}

// do sends a request and returns the answer's code and text.
func (a account) do(ctx context.Context, t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, a.server+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := a.client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(bytes.TrimSpace(text))
}

// want sends a request and fails the test if the response is another one.
func (a account) want(ctx context.Context, t *testing.T, code int, method, path, body string) {
	t.Helper()
	if got, text := a.do(ctx, t, method, path, body); got != code {
		t.Errorf("%s %s %s: %d, want %d: %s", method, path, body, got, code, text)
	}
}
