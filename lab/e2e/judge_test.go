package e2e

import (
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab/audit"
)

// TestJudge checks the ledger with rights that are too wide, and a right that is not.
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
		"role view: list pods in liqonet: it is not used":    false,
		"role operate: list pods in liqonet: it is not used": false,
		"role operate: list pods: it is not used":            true,
		"role operate: list secrets: keys of everybody":      true,
		"role operate: list events: it is not used":          true, // it is excused in the namespace alone
		"role operate: delete pods: it is cluster-wide":      true,
		"role operate: * pods in liqonet: it has no bounds":  true,
	} {
		if slices.Contains(found, text) != want {
			t.Errorf("%q was found: %v, want %v: %q", text, !want, want, found)
		}
	}
	if short := g.judge(false); slices.ContainsFunc(short, func(text string) bool { return strings.HasSuffix(text, "it is not used") }) ||
		!slices.Contains(short, "role operate: delete pods: it is cluster-wide") {
		t.Errorf("after some of the tests: %q", short)
	}
}
