package templates

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"liqonet.io/liqonet/internal/testbed/require"
)

// wideWrites are the cluster-wide objects of an installation: the user who installs it may write only these.
var wideWrites = []string{
	"namespaces liqonet",
	"clusterroles liqonet:liqonet:node", "clusterrolebindings liqonet:liqonet:node",
	"validatingadmissionpolicies liqonet.liqonet.claims", "validatingadmissionpolicybindings liqonet.liqonet.claims",
	"validatingadmissionpolicies liqonet.liqonet.records", "validatingadmissionpolicybindings liqonet.liqonet.records",
	"validatingadmissionpolicies liqonet.liqonet.services", "validatingadmissionpolicybindings liqonet.liqonet.services",
	"validatingadmissionpolicies liqonet.liqonet.gateways", "validatingadmissionpolicybindings liqonet.liqonet.gateways",
	"validatingadmissionpolicies liqonet.liqonet.ingresses", "validatingadmissionpolicybindings liqonet.liqonet.ingresses",
	"validatingadmissionpolicies liqonet.liqonet.leases", "validatingadmissionpolicybindings liqonet.liqonet.leases",
	"validatingadmissionpolicies liqonet.liqonet.pods", "validatingadmissionpolicybindings liqonet.liqonet.pods",
}

func TestUsersWriteNamedObjectsOutsideTheNamespace(t *testing.T) {
	var written []string
	for _, level := range Levels() {
		local, wide, err := Rules("liqonet", level)
		require.NoError(t, err)
		for _, rule := range slices.Concat(local, wide) {
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames) {
				if strings.Contains(word, "*") || slices.Contains([]string{"escalate", "bind", "impersonate", "deletecollection"}, word) {
					t.Errorf("%s: %v", level, rule)
				}
			}
			if slices.Contains(rule.Resources, "secrets") && level == View {
				t.Errorf("who looks reads keys: %v", rule)
			}
		}
		for _, rule := range wide {
			if slices.Contains(rule.Resources, "secrets") {
				t.Errorf("%s: keys of everybody: %v", level, rule)
			}
			if readsOnly(rule) || slices.Equal(rule.Resources, []string{"tokenreviews"}) {
				continue // a review stores nothing
			}
			if level != Administer || len(rule.ResourceNames) == 0 {
				t.Errorf("%s: cluster-wide: %v", level, rule)
			}
			for _, resource := range rule.Resources {
				for _, name := range rule.ResourceNames {
					written = append(written, resource+" "+name)
				}
			}
		}
	}
	slices.Sort(written)
	if want := slices.Sorted(slices.Values(wideWrites)); !slices.Equal(written, want) {
		t.Errorf("cluster-wide writes\n%q, want\n%q", written, want)
	}
}

// allows reports whether one of the rules grants a permission.
func allows(rules []rbacv1.PolicyRule, verb, group, resource, name string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, verb) && slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
	})
}

func TestEachLevelIncludesTheOneBefore(t *testing.T) {
	var lower [2][]rbacv1.PolicyRule
	for _, level := range Levels() {
		local, wide, err := Rules("liqonet", level)
		require.NoError(t, err)
		for i, rules := range [2][]rbacv1.PolicyRule{local, wide} {
			for _, had := range lower[i] {
				for _, verb := range had.Verbs {
					for _, resource := range had.Resources {
						for _, name := range append([]string{""}, had.ResourceNames...)[min(1, len(had.ResourceNames)):] {
							if !allows(rules, verb, had.APIGroups[0], resource, name) {
								t.Errorf("%s may not %s %s %s", level, verb, resource, name)
							}
						}
					}
				}
			}
			lower[i] = rules
		}
	}
}

// TestUsersHaveTheRightsTheyGrant: an API server rejects grants that exceed the user's own permissions. A user who
// creates the roles of helpers must have their permissions.
func TestUsersHaveTheRightsTheyGrant(t *testing.T) {
	for level, render := range map[Level]func() ([]Object, error){Operate: gateway(func(*GatewayValues) {}), Administer: base} {
		local, wide, err := Rules("liqonet", level)
		require.NoError(t, err)
		objects, err := render()
		require.NoError(t, err)
		for _, o := range objects {
			var given, held []rbacv1.PolicyRule
			switch role := o.(type) {
			case *rbacv1.Role:
				given, held = role.Rules, local
			case *rbacv1.ClusterRole:
				given, held = role.Rules, wide
			}
			for _, rule := range given {
				for _, verb := range rule.Verbs {
					for _, resource := range rule.Resources {
						for _, name := range append([]string{""}, rule.ResourceNames...)[min(1, len(rule.ResourceNames)):] {
							if !allows(held, verb, rule.APIGroups[0], resource, name) {
								t.Errorf("%s gives %s %s %s and has it not", level, verb, resource, name)
							}
						}
					}
				}
			}
		}
	}
}

func TestHostileAccess(t *testing.T) {
	for _, v := range []struct {
		namespace string
		level     Level
	}{{"a\nkind: x", View}, {"", View}, {"liqonet", "root"}, {"liqonet", ""}, {"liqonet", "../base/role"}} {
		if _, err := Access(v.namespace, v.level); err == nil {
			t.Errorf("%+v was taken", v)
		}
	}
}

// TestDigestFollowsEveryChange: a user who may not change the installation compares its digest with the expected one.
func TestDigestFollowsEveryChange(t *testing.T) {
	seen := map[string]int{}
	for i, v := range []BaseValues{
		{Namespace: "liqonet", Image: "a:1"}, {Namespace: "liqonet", Image: "a:2"},
		{Namespace: "tools", Image: "a:1"}, {Namespace: "liqonet", Image: "a:1", Policies: true},
		{Namespace: "liqonet", Image: "a:1", Pods: Pods{GatewayNodeSelector: map[string]string{"zone": "1"}}},
	} {
		for range 2 {
			objects, err := Base(v)
			require.NoError(t, err)
			d := Digest(objects)
			if other, taken := seen[d]; d == "" || taken && other != i {
				t.Errorf("installations %d and %d have digest %q", i, other, d)
			}
			seen[d] = i
			if _, last := objects[len(objects)-1].(*appsv1.DaemonSet); !last {
				t.Error("the DaemonSet is not the last object")
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("%d digests of 5 installations", len(seen))
	}
}
