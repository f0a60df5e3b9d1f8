package audit

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Right is a verb on resources that a user may use, or has used.
type Right struct {
	Verb      string
	Group     string // "" is the core group
	Resource  string // plural, with its subresource: "pods/exec"
	Namespace string // "" is cluster-wide
	Name      string // "" is any
}

// String is such as "patch leases.coordination.k8s.io in liqonet".
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// neededFor reports whether a request required the right, for a user with rights of its own in the namespaces homes:
// requests there do not require a right in all namespaces.
func (r Right) neededFor(done Right, homes map[string]bool) bool {
	return r.Verb == done.Verb && r.Group == done.Group && r.Resource == done.Resource &&
		(r.Name == "" || r.Name == done.Name) &&
		(r.Namespace == done.Namespace || r.Namespace == "" && !homes[done.Namespace])
}

// Writes reports whether the right permits a change. Creating a review, such as a TokenReview, is a query: nothing is
// stored.
func (r Right) Writes() bool {
	return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) && !strings.HasSuffix(r.Resource, "reviews")
}

// Wild reports whether the right has a wildcard in any field.
func (r Right) Wild() bool {
	return r.Verb == "*" || r.Group == "*" || strings.Contains(r.Resource, "*") || r.Name == "*"
}

// rule is a rule of a role.
type rule struct {
	Verbs         []string `json:"verbs"`
	APIGroups     []string `json:"apiGroups"`
	Resources     []string `json:"resources"`
	ResourceNames []string `json:"resourceNames"`
}

// rights returns the rights that the rule grants in a namespace; "" means all namespaces.
func (r rule) rights(namespace string) []Right {
	names := r.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []Right
	for _, verb := range r.Verbs {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, name := range names {
					all = append(all, Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name})
				}
			}
		}
	}
	return all
}

// binding grants a role to a user.
type binding struct {
	role place
	user string
	// namespace bounds the rights; "" is a ClusterRoleBinding's.
	namespace string
}

// rbacObject has the fields of roles and bindings that matter.
type rbacObject struct {
	Kind     string `json:"kind"`
	Rules    []rule `json:"rules"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	RoleRef struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"roleRef"`
	Subjects []struct {
		Kind      string `json:"kind"`
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"subjects"`
}

// learn records the rights that a request grants. Only requests with whole objects count: create and apply.
func (l *Log) learn(log string, e event) error {
	if e.ObjectRef.APIGroup != "rbac.authorization.k8s.io" || len(e.RequestObject) == 0 {
		return nil
	}
	var o rbacObject
	if err := json.Unmarshal(e.RequestObject, &o); err != nil {
		return err
	}
	namespace := e.ObjectRef.Namespace
	switch o.Kind {
	case "Role", "ClusterRole":
		if l.roles == nil {
			l.roles = make(map[place][]rule)
		}
		l.roles[place{log, namespace, o.Metadata.Name}] = o.Rules
	case "RoleBinding", "ClusterRoleBinding":
		role := place{log, namespace, o.RoleRef.Name}
		if o.RoleRef.Kind == "ClusterRole" {
			role.namespace = ""
		}
		for _, s := range o.Subjects {
			user := s.Name
			if s.Kind == "ServiceAccount" {
				user = "system:serviceaccount:" + s.Namespace + ":" + s.Name
			}
			l.bindings = append(l.bindings, binding{role: role, user: user, namespace: namespace})
		}
	}
	return nil
}

// Users returns the users with rights, sorted.
func (l *Log) Users() []string {
	users := make(map[string]bool)
	for _, b := range l.bindings {
		users[b.user] = true
	}
	return slices.Sorted(maps.Keys(users))
}

// Rights returns the rights of a user, sorted, without duplicates.
func (l *Log) Rights(user string) []Right {
	all := make(map[Right]bool)
	for _, b := range l.bindings {
		if b.user != user {
			continue
		}
		for _, rule := range l.roles[b.role] {
			for _, r := range rule.rights(b.namespace) {
				all[r] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), compare)
}

// Uses counts the requests of a user that need a right. A cluster-wide one is needed across all namespaces, and in
// those where the user has no other right.
func (l *Log) Uses(user string, r Right) int {
	homes := make(map[string]bool)
	for _, b := range l.bindings {
		if b.user == user && b.namespace != "" {
			homes[b.namespace] = true
		}
	}
	n := 0
	for done, times := range l.uses[user] {
		if r.neededFor(done, homes) {
			n += times
		}
	}
	return n
}

func compare(a, b Right) int {
	return cmp.Or(
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
		strings.Compare(a.Name, b.Name), strings.Compare(a.Verb, b.Verb))
}
