package e2e

import (
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab/audit"
)

// TestJudge gives the ledger rights of users that are too wide, and one that is not.
func TestJudge(t *testing.T) {
	g := ledger{uses: map[string]map[audit.Right]int{
		"view": {{Verb: "list", Resource: "pods", Namespace: "liqonet"}: 1},
		"operate": {
			{Verb: "list", Resource: "pods", Namespace: "liqonet"}: 0, // the lower role's use is its own
			{Verb: "list", Resource: "pods"}:                       0,
			{Verb: "list", Resource: "secrets"}:                    1,
			{Verb: "delete", Resource: "pods"}:                     1,
			{Verb: "list", Resource: "events"}:                     0,
			{Verb: "*", Resource: "pods", Namespace: "liqonet"}:    1,
		},
	}}
	found := g.judge(true)
	for text, want := range map[string]bool{
		"role view: list pods in liqonet: nobody uses it":    false,
		"role operate: list pods in liqonet: nobody uses it": false,
		"role operate: list pods: nobody uses it":            true,
		"role operate: list secrets: keys of everybody":      true,
		"role operate: list events: nobody uses it":          true, // it is excused in the namespace alone
		"role operate: delete pods: it is cluster-wide":      true,
		"role operate: * pods in liqonet: it has no bounds":  true,
	} {
		if slices.Contains(found, text) != want {
			t.Errorf("%q was found: %v, want %v: %q", text, !want, want, found)
		}
	}
	if short := g.judge(false); slices.ContainsFunc(short, func(text string) bool { return strings.HasSuffix(text, "nobody uses it") }) ||
		!slices.Contains(short, "role operate: delete pods: it is cluster-wide") {
		t.Errorf("after some of the tests: %q", short)
	}
}
