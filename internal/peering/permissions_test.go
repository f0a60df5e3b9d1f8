package peering

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/templates"
)

var everything = kube.Permission{Verb: "*", Group: "*", Resource: "*"}

func TestMissingPermissionsAreListedAtOnce(t *testing.T) {
	secrets := kube.Permission{Verb: "create", Resource: "secrets", Namespace: records.DefaultNamespace}
	roles := kube.Permission{
		Verb: "delete", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: templates.NodeClusterRole(records.DefaultNamespace),
	}
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{Denied: []kube.Permission{everything, secrets, roles}})
	err := inventory.CheckPermissions(t.Context(), c, templates.Administer)
	var refused *kube.PermissionError
	if !errors.As(err, &refused) || len(refused.Missing) != 2 || !slices.Contains(refused.Missing, secrets) || !slices.Contains(refused.Missing, roles) {
		t.Errorf("error %v", err)
	}
	err = inventory.CheckPermissions(t.Context(), c, templates.Operate)
	if !errors.As(err, &refused) || !slices.Equal(refused.Missing, []kube.Permission{secrets}) {
		t.Errorf("who connects needs no ClusterRole: error %v", err)
	}
	c, _ = fakecluster.NewAPIServer(fakecluster.Config{Denied: []kube.Permission{everything}})
	if err := inventory.CheckPermissions(t.Context(), c, templates.Administer); err != nil {
		t.Errorf("everything that is needed is allowed, and yet: %v", err)
	}
}

// limit restricts the user of a cluster to the permissions of a level, and records denied writes.
func limit(t *testing.T, w *fakecluster.Cluster, level templates.Level) {
	t.Helper()
	allowed, err := inventory.NeededPermissions(w.Namespace, level)
	require.NoError(t, err)
	w.Fake.PrependReactor("create", "selfsubjectaccessreviews", fakecluster.Review(func(p kube.Permission) bool {
		return slices.Contains(allowed, p)
	}))
	base, err := templates.Base(templates.BaseValues{Namespace: w.Namespace, Image: "any", Policies: true})
	require.NoError(t, err)
	w.Fake.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		for _, o := range base {
			if o.GetName() == patch.Name && o.GetNamespace() == patch.Namespace && patch.Subresource == "" {
				t.Errorf("%s of %s %s, which is the installation's", action.GetVerb(), patch.Resource.Resource, patch.Name)
			}
		}
		return false, nil, nil
	})
}

// A user who may connect, but not install, can connect where liqonet is installed, without changes of the installation.
func TestConnectWithoutTheRightToInstall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		for _, w := range []*fakecluster.Cluster{a, b} {
			o := connectOptions(a, b)
			fakecluster.Must(t, Init, InitOptions{Side: Side{Cluster: w.Cluster}, Installation: o.Installation, Timeout: o.Timeout})
			limit(t, w, templates.Operate)
		}
		fakecluster.Must(t, Connect, connectOptions(a, b))
		other := connectOptions(a, b)
		other.Image = "registry.example/liqonet:other"
		other.Update = true
		_, err := Connect(t.Context(), other, &fakecluster.Recorder{})
		if err == nil || !strings.Contains(err.Error(), "you may not change it") || !strings.Contains(hint.Of(err), "init --update") {
			t.Errorf("another version's installation: error %v", err)
		}
		if _, err := Init(t.Context(), InitOptions{Side: Side{Cluster: a.Cluster}, Installation: other.Installation}, &fakecluster.Recorder{}); err == nil {
			t.Error("init without the right to install")
		}
	})
}

func TestConnectWhereNothingIsInstalledNeedsTheRightToInstall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		limit(t, a, templates.Operate)
		o := connectOptions(a, b)
		o.Image, o.NoImage = "", errors.New("not a published release") // the permissions come first
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		var refused *kube.PermissionError
		daemonSet := kube.Permission{Verb: "create", Group: "apps", Resource: "daemonsets", Namespace: a.Namespace, Name: records.NodeName}
		if !errors.As(err, &refused) || !slices.Contains(refused.Missing, daemonSet) {
			t.Errorf("error %v", err)
		}
		if _, err := a.Fake.CoreV1().Namespaces().Get(t.Context(), a.Namespace, metav1.GetOptions{}); err == nil {
			t.Error("something was changed")
		}
	})
}
