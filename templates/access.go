package templates

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"liqonet.io/liqonet/internal/records"
)

// Level is a set of permissions of a liqonet user in a cluster. Each level includes those before it.
type Level string

// The levels.
const (
	View Level = "view" // network status, ipam list and translate
	// network connect and disconnect, where liqonet is installed; ipam reserve and similar commands.
	Operate    Level = "operate"
	Administer Level = "administer" // network init, reset and test; connect where liqonet is not installed yet
)

// Levels returns all levels, the lowest first.
func Levels() []Level { return []Level{View, Operate, Administer} }

// Access renders the roles of a level, for liqonet in a namespace. Level Administer begins with the Namespace, which
// must exist before a Role can be created in it. The roles do not have liqonet's label: they do not belong to the
// installation and are not deleted with it.
func Access(namespace string, level Level) ([]Object, error) {
	if err := validateNamespace(namespace); err != nil {
		return nil, fmt.Errorf("render roles: %w", err)
	}
	local, wide, err := Rules(namespace, level)
	if err != nil {
		return nil, fmt.Errorf("render roles: %w", err)
	}
	var r reader
	home := read[corev1.Namespace](&r, "base/namespace.yaml")
	role := read[rbacv1.Role](&r, "access/view-role.yaml")
	clusterRole := read[rbacv1.ClusterRole](&r, "access/view-clusterrole.yaml")
	if r.err != nil {
		return nil, r.err
	}
	identify(home, "", namespace, map[string]string{records.LabelComponent: records.ComponentFabric})
	role.Name, role.Namespace, role.Rules = fmt.Sprintf("%s:%s", records.DefaultNamespace, level), namespace, local
	clusterRole.Name, clusterRole.Rules = clusterWide(namespace, string(level)), wide
	if level == Administer {
		return []Object{home, role, clusterRole}, nil
	}
	return []Object{role, clusterRole}, nil
}

// Rules returns the rules of a level, in liqonet's namespace and cluster-wide. Reads are listed in templates/access;
// the permissions to create, change and remove objects are derived from the objects.
func Rules(namespace string, level Level) (local, wide []rbacv1.PolicyRule, err error) {
	if !slices.Contains(Levels(), level) {
		return nil, nil, fmt.Errorf("level %q: must be view, operate or administer", level)
	}
	here, everywhere := rights{}, rights{}
	for _, l := range Levels()[:slices.Index(Levels(), level)+1] {
		var r reader
		here.add(read[rbacv1.Role](&r, fmt.Sprintf("access/%s-role.yaml", l)).Rules)
		everywhere.add(read[rbacv1.ClusterRole](&r, fmt.Sprintf("access/%s-clusterrole.yaml", l)).Rules)
		objects, e := managed(namespace, l)
		if err := errors.Join(r.err, e); err != nil {
			return nil, nil, err
		}
		for _, o := range objects {
			manage(o, l, here, everywhere)
		}
	}
	if err := inspect(namespace, everywhere); err != nil {
		return nil, nil, err
	}
	return here.rules(), everywhere.rules(), nil
}

// managed returns the objects that users of a level create and remove, in addition to those of lower levels.
func managed(namespace string, level Level) ([]Object, error) {
	const any = "any" // permissions do not depend on the image
	switch level {
	case Operate:
		return Gateways(GatewayValues{Namespace: namespace, Peering: any, Image: any, Role: records.Server, Gateways: 2, Tunnels: 1,
			Settings: records.GatewaySettings{Ingress: new(any)}})
	case Administer:
		base, err := Base(BaseValues{Namespace: namespace, Image: any, Policies: true})
		verify, e := Verify(VerifyValues{Namespace: namespace, Image: any})
		test, e2 := managedTest(namespace, any)
		return append(slices.Concat(base, test), verify), errors.Join(err, e, e2)
	}
	return nil, nil
}

// inspect adds the permissions to check whether the cluster-wide objects of the installation were changed.
func inspect(namespace string, everywhere rights) error {
	objects, err := Base(BaseValues{Namespace: namespace, Image: "any", Policies: true})
	for _, o := range objects {
		if _, isNamespace := o.(*corev1.Namespace); o.GetNamespace() != "" || isNamespace {
			continue
		}
		group, resource := resourceOf(o)
		everywhere.grant(right{group: group, resource: resource, name: o.GetName()}, "get")
	}
	return err
}

// manage adds the permissions to create and remove an object, and the permissions that the object grants: an API server
// rejects grants that exceed the user's own permissions. The names of a peering's objects are not known in advance.
func manage(o Object, level Level, here, everywhere rights) {
	where, name := everywhere, o.GetName()
	if o.GetNamespace() != "" {
		where = here
	}
	if level == Operate {
		name = ""
	}
	group, resource := resourceOf(o)
	on := right{group: group, resource: resource, name: name}
	where.grant(on, "get", "list", "patch", "delete")
	switch role := o.(type) {
	case *corev1.Namespace:
		where.grant(on, "watch") // to wait for its deletion; creating it is up to the administrator, see Access
		return
	case *rbacv1.Role:
		rules := slices.Clone(role.Rules)
		for i := range rules {
			if level == Operate { // they are created for one peering
				rules[i].ResourceNames = nil
			}
		}
		here.add(rules)
	case *rbacv1.ClusterRole:
		everywhere.add(role.Rules)
	}
	where.grant(on, "create")
}
