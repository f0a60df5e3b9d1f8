package cluster_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/cluster/clustertest"
)

func TestPermissionsOfObjects(t *testing.T) {
	permissions, err := cluster.Permissions(installation(t, "liqonet:1"), "create", "patch")
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(permissions))
	for i, p := range permissions {
		texts[i] = p.String()
	}
	for _, want := range []string{
		"create namespaces", "patch daemonsets.apps in namespace liqonet", "create clusterroles.rbac.authorization.k8s.io",
		"watch pods", "get leases.coordination.k8s.io in namespace liqonet", // granted by the roles
	} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is missing", want)
		}
	}
	slices.Sort(texts)
	if unique := slices.Compact(slices.Clone(texts)); len(unique) != len(texts) {
		t.Errorf("some are asked twice: %q", texts)
	}
}

func TestCheckPermissionsListsAllThatAreMissing(t *testing.T) {
	denied := []cluster.Permission{
		{Verb: "create", Group: "apps", Resource: "daemonsets", Namespace: "liqonet"},
		{Verb: "patch", Resource: "configmaps", Namespace: "liqonet", Name: "peering-b-status"},
	}
	c, _ := clustertest.New(clustertest.Config{Context: "milan", Denied: denied})
	asked := append([]cluster.Permission{{Verb: "list", Resource: "nodes"}}, denied...)
	err := c.CheckPermissions(t.Context(), asked)
	var refused *cluster.PermissionError
	if !errors.As(err, &refused) {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(denied, refused.Missing); diff != "" {
		t.Error(diff)
	}
	want := `check permissions in cluster "milan": not allowed: create daemonsets.apps in namespace liqonet; patch configmaps peering-b-status in namespace liqonet`
	if err.Error() != want || refused.Hint() == "" {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if err := c.CheckPermissions(t.Context(), cluster.DiscoveryPermissions()); err != nil {
		t.Errorf("allowed ones: %v", err)
	}
}

func TestCheckPermissionsThatCannotBeAsked(t *testing.T) {
	c, kube := clustertest.New(clustertest.Config{})
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	var refused *cluster.PermissionError
	if err := c.CheckPermissions(t.Context(), cluster.DiscoveryPermissions()); err == nil || errors.As(err, &refused) {
		t.Errorf("error %v", err)
	}
}
