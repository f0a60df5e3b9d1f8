package kube_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

func TestPermissionsOfRules(t *testing.T) {
	permissions := kube.Permissions([]rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets", "daemonsets/status"}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"x", "y"}, Verbs: []string{"list"}},
	}, "liqonet")
	texts := make([]string, len(permissions))
	for i, p := range permissions {
		texts[i] = p.String()
	}
	if diff := cmp.Diff([]string{
		"get daemonsets.apps in namespace liqonet", "get daemonsets.apps/status in namespace liqonet",
		"patch daemonsets.apps in namespace liqonet", "patch daemonsets.apps/status in namespace liqonet",
		"list configmaps x in namespace liqonet", "list configmaps y in namespace liqonet",
	}, texts); diff != "" {
		t.Error(diff)
	}
}

func TestCheckPermissionsListsAllThatAreMissing(t *testing.T) {
	denied := []kube.Permission{
		{Verb: "create", Group: "apps", Resource: "daemonsets", Namespace: "liqonet"},
		{Verb: "patch", Resource: "configmaps", Namespace: "liqonet", Name: "status-b"},
	}
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{Context: "milan", Denied: denied})
	asked := append([]kube.Permission{{Verb: "list", Resource: "nodes"}}, denied...)
	err := c.CheckPermissions(t.Context(), asked)
	var refused *kube.PermissionError
	if !errors.As(err, &refused) {
		t.Fatalf("error %v", err)
	}
	assert.Equal(t, "missing permissions", denied, refused.Missing)
	want := `check permissions in cluster "milan": not allowed: create daemonsets.apps in namespace liqonet; patch configmaps status-b in namespace liqonet`
	if err.Error() != want || refused.Hint() == "" {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if err := c.CheckPermissions(t.Context(), kube.DiscoveryPermissions()); err != nil {
		t.Errorf("allowed ones: %v", err)
	}
}

func TestCheckPermissionsThatCannotBeAsked(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{})
	api.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	var refused *kube.PermissionError
	if err := c.CheckPermissions(t.Context(), kube.DiscoveryPermissions()); err == nil || errors.As(err, &refused) {
		t.Errorf("error %v", err)
	}
}
