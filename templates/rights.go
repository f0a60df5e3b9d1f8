package templates

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// right is a resource on which verbs are granted.
type right struct {
	group, resource string
	name            string // "": any
}

// rights are sets of verbs by resource.
type rights map[right]map[string]bool

// grant adds verbs.
func (r rights) grant(on right, verbs ...string) {
	if r[on] == nil {
		r[on] = make(map[string]bool)
	}
	for _, verb := range verbs {
		r[on][verb] = true
	}
}

// add adds the permissions of rules.
func (r rights) add(rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					r.grant(right{group, resource, name}, rule.Verbs...)
				}
			}
		}
	}
}

// rules returns the smallest number of rules, with one group each, that grant the permissions; sorted.
func (r rights) rules() []rbacv1.PolicyRule {
	byNames := make(map[right][]string) // names for which the verbs, joined, of a resource are granted
	for on, verbs := range r {
		var own []string
		for verb := range verbs {
			if on.name == "" || !r[right{on.group, on.resource, ""}][verb] {
				own = append(own, verb)
			}
		}
		if len(own) > 0 {
			key := right{on.group, on.resource, inOrder(own)}
			byNames[key] = append(byNames[key], on.name)
		}
	}
	merged := make(map[[3]string][]string) // resources by group, verbs and names
	for on, names := range byNames {
		slices.Sort(names)
		// The empty name needs separate rules: in a list of names it would be ignored.
		if names[0] == "" {
			key := [3]string{on.group, on.name, ""}
			merged[key] = append(merged[key], on.resource)
			names = names[1:]
		}
		if len(names) > 0 {
			key := [3]string{on.group, on.name, strings.Join(names, " ")}
			merged[key] = append(merged[key], on.resource)
		}
	}
	rules := make([]rbacv1.PolicyRule, 0, len(merged))
	for _, key := range slices.SortedFunc(maps.Keys(merged), func(a, b [3]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[2], b[2]), strings.Compare(a[1], b[1]))
	}) {
		rule := rbacv1.PolicyRule{
			APIGroups: []string{key[0]}, Resources: slices.Sorted(slices.Values(merged[key])), Verbs: strings.Fields(key[1]),
		}
		if key[2] != "" {
			rule.ResourceNames = strings.Fields(key[2])
		}
		rules = append(rules, rule)
	}
	return rules
}

// inOrder joins verbs in conventional order.
func inOrder(verbs []string) string {
	order := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	slices.SortFunc(verbs, func(a, b string) int {
		return cmp.Or(slices.Index(order, a)-slices.Index(order, b), strings.Compare(a, b))
	})
	return strings.Join(verbs, " ")
}

// resourceOf returns the API group and plural of an object for RBAC.
func resourceOf(o Object) (group, resource string) {
	plural, _ := meta.UnsafeGuessKindToResource(o.GetObjectKind().GroupVersionKind())
	return plural.Group, plural.Resource
}
