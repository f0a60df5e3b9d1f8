package templates

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestRightsTable: the table in docs/contributing/security.md matches the permissions of all roles.
func TestRightsTable(t *testing.T) {
	const (
		page  = "../docs/contributing/security.md"
		begin = "<!-- rights: written by make generate -->\n"
		end   = "<!-- end of rights -->\n"
	)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, begins := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	roles, err := allRoles()
	if err != nil || !begins || !ends {
		t.Fatalf("the table begins: %v, ends: %v; %v", begins, ends, err)
	}
	golden.File(t, page, before+begin+rightsTable(roles)+end+after)
}

// object is a resource on which permissions are granted.
type object struct {
	cluster        bool // in all namespaces, or in none
	resource, name string
}

// role is a column of the table: verbs by resource.
type role struct {
	name  string
	verbs map[object][]string
}

// allRoles returns the roles of users and helpers.
func allRoles() ([]role, error) {
	const namespace, image = records.DefaultNamespace, "any"
	var roles []role
	for _, level := range Levels() {
		here, everywhere, err := Rules(namespace, level)
		if err != nil {
			return nil, err
		}
		r := newRole(string(level))
		r.add(false, here)
		r.add(true, everywhere)
		roles = append(roles, r)
	}
	base, err := Base(BaseValues{Namespace: namespace, Image: image, Policies: true})
	if err != nil {
		return nil, err
	}
	gateway, err := Gateways(GatewayValues{
		Namespace: namespace, Peering: "peer", Image: image, Role: records.Server, Gateways: 1, Tunnels: 1,
	})
	if err != nil {
		return nil, err
	}
	return append(roles, helperRole("node", base), helperRole("gateway", gateway)), nil
}

// helperRole returns the permissions that the objects of a helper grant to it. Roles without a binding are for others.
func helperRole(name string, objects []Object) role {
	r := newRole(name)
	bound := make(map[string]bool)
	for _, o := range objects {
		switch b := o.(type) {
		case *rbacv1.RoleBinding:
			bound[b.RoleRef.Kind+b.RoleRef.Name] = true
		case *rbacv1.ClusterRoleBinding:
			bound[b.RoleRef.Kind+b.RoleRef.Name] = true
		}
	}
	for _, o := range objects {
		switch given := o.(type) {
		case *rbacv1.Role:
			if bound["Role"+given.Name] {
				r.add(false, given.Rules)
			}
		case *rbacv1.ClusterRole:
			if bound["ClusterRole"+given.Name] {
				r.add(true, given.Rules)
			}
		}
	}
	return r
}

func newRole(name string) role { return role{name: name, verbs: make(map[object][]string)} }

func (r role) add(cluster bool, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					o := object{cluster, schema.GroupResource{Group: group, Resource: resource}.String(), name}
					r.verbs[o] = append(r.verbs[o], rule.Verbs...)
				}
			}
		}
	}
}

// rightsTable returns the table, with a column for each role. Objects of one resource with the same permissions share a
// line, if they follow each other.
func rightsTable(roles []role) string {
	objects := make(map[object]bool)
	var names []string
	var b strings.Builder
	b.WriteString("| on |")
	for _, r := range roles {
		fmt.Fprintf(&b, " %s |", r.name)
		for o := range r.verbs {
			objects[o] = true
		}
	}
	b.WriteString("\n" + strings.Repeat("|---", len(roles)+1) + "|\n")
	sorted := slices.SortedFunc(maps.Keys(objects), compareObjects)
	for i, o := range sorted {
		// The last of several objects has the line.
		names = append(names, o.name)
		if i+1 < len(sorted) && sameLine(roles, o, sorted[i+1]) {
			continue
		}
		fmt.Fprintf(&b, "| %s |", o.with(names))
		for _, r := range roles {
			fmt.Fprintf(&b, " %s |", strings.Join(r.verbs[o], " "))
		}
		b.WriteString("\n")
		names = nil
	}
	return b.String()
}

// sameLine reports whether two objects differ in their names alone.
func sameLine(roles []role, o, next object) bool {
	return o.name != "" && o.resource == next.resource && o.cluster == next.cluster &&
		!slices.ContainsFunc(roles, func(r role) bool { return !slices.Equal(r.verbs[o], r.verbs[next]) })
}

func (o object) String() string { return o.with([]string{o.name}) }

// with returns the text for the objects of these names.
func (o object) with(names []string) string {
	text := o.resource
	if o.name != "" {
		text += " `" + strings.Join(names, "`, `") + "`"
	}
	if o.cluster {
		text += ", cluster-wide"
	}
	return text
}

func compareObjects(a, b object) int {
	if a.cluster != b.cluster {
		if a.cluster {
			return 1
		}
		return -1
	}
	return strings.Compare(a.String(), b.String())
}
