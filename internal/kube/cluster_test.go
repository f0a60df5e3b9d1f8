package kube_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// kubeconfig writes a kubeconfig with contexts "milan", the current one, and "rome".
func kubeconfig(t *testing.T, server string) kube.Kubeconfig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `apiVersion: v1
kind: Config
current-context: milan
clusters: [{name: c, cluster: {server: "` + server + `"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: milan, context: {cluster: c, user: u, namespace: default}}
- {name: rome, context: {cluster: c, user: u}}
`
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return kube.Kubeconfig{File: path}
}

func TestConnectSetsContextAndNamespace(t *testing.T) {
	flags := kubeconfig(t, "http://192.0.2.1")
	c, err := kube.Connect(flags, "v1")
	require.NoError(t, err)
	// The namespace in the kubeconfig is the user's, not liqonet's.
	if c.Context != "milan" || c.Entry != "c" || c.Namespace != "liqonet" {
		t.Errorf("context %q, entry %q, namespace %q", c.Context, c.Entry, c.Namespace)
	}
	flags.Context, flags.Namespace = "rome", "tools"
	if c, err = kube.Connect(flags, "v1"); err != nil || c.Context != "rome" || c.Namespace != "tools" {
		t.Errorf("%+v, %v", c, err)
	}
	flags.Context = "nowhere"
	if _, err = kube.Connect(flags, "v1"); err == nil || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("error %v", err)
	}
}

// TestConnectNeedsACluster: without a kubeconfig, or without a context in it, Connect does not use client-go's default
// server.
func TestConnectNeedsACluster(t *testing.T) {
	const config = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://192.0.2.1}}]\n"
	for name, c := range map[string]struct{ text, want string }{
		"none":               {"", "there is none"},
		"no contexts":        {config, "it has no contexts"},
		"no current context": {config + "contexts: [{name: milan, context: {cluster: c}}]\n", "no current context"},
	} {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if c.text != "" {
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		}
		t.Setenv("KUBECONFIG", path)
		got, err := kube.Connect(kube.Kubeconfig{}, "v1")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// A cluster selected by name, without a context, is accepted.
	flags := kubeconfig(t, "http://localhost:8080")
	flags.Cluster = "c"
	_, err := kube.Connect(flags, "v1")
	assert.NoError(t, err)
}

func TestReach(t *testing.T) {
	agent := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		_, _ = w.Write([]byte(`{"gitVersion": "v1.36.3"}`))
	}))
	defer server.Close()
	c, err := kube.Connect(kubeconfig(t, server.URL), "v9")
	require.NoError(t, err)
	if err := c.Reach(t.Context()); err != nil || agent != "liqoctl/v9" {
		t.Errorf("user agent %q, %v", agent, err)
	}
	server.Close()
	err = c.Reach(t.Context())
	var reach *kube.ReachError
	if !errors.As(err, &reach) || reach.Host != server.URL || !strings.Contains(reach.Hint(), "milan") {
		t.Errorf("error %v", err)
	}
}

func TestID(t *testing.T) {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "u-1"}}
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{system}})
	if id, err := c.ID(t.Context()); err != nil || id != "u-1" {
		t.Errorf("id %q, %v", id, err)
	}
	c, _ = fakecluster.NewAPIServer(fakecluster.Config{})
	if _, err := c.ID(t.Context()); err == nil {
		t.Error("a cluster without kube-system has an id")
	}
}
