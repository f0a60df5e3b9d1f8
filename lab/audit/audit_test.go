package audit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/lab/require"
)

// noted is a log of: a Role and its binding, applied; a list by the user who has it; a list that was refused; an
// object applied that was not there.
const noted = `{"verb":"patch","user":{"username":"root"},"objectRef":{"resource":"roles","namespace":"ns","name":"r","apiGroup":"rbac.authorization.k8s.io"},"responseStatus":{"code":201},"requestObject":{"kind":"Role","metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["x","y"],"verbs":["list","patch"]},{"apiGroups":[""],"resources":["configmaps"],"verbs":["create"]}]},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"create","user":{"username":"root"},"objectRef":{"resource":"rolebindings","namespace":"ns","name":"r","apiGroup":"rbac.authorization.k8s.io"},"responseStatus":{"code":201},"requestObject":{"kind":"RoleBinding","metadata":{"name":"r"},"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"ServiceAccount","namespace":"ns","name":"sa"}]},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"list","user":{"username":"system:serviceaccount:ns:sa"},"objectRef":{"resource":"configmaps","namespace":"ns","name":"x"},"responseStatus":{"code":200},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"list","user":{"username":"system:serviceaccount:ns:sa"},"objectRef":{"resource":"configmaps","namespace":"ns","name":"y"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"patch","user":{"username":"system:serviceaccount:ns:sa"},"objectRef":{"resource":"configmaps","namespace":"ns","name":"x"},"responseStatus":{"code":201},"annotations":{"authorization.k8s.io/decision":"allow"}}
`

func TestRightsAndUses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(path, []byte(noted), 0o600))
	var l Log
	require.NoError(t, l.Read(path))
	const user = "system:serviceaccount:ns:sa"
	if diff := cmp.Diff([]string{user}, l.Users()); diff != "" {
		t.Error(diff)
	}
	got := map[string]int{}
	for _, r := range l.Rights(user) {
		got[r.String()] = l.Uses(user, r)
	}
	want := map[string]int{
		"create configmaps in ns": 1,
		"list configmaps x in ns": 1, "patch configmaps x in ns": 1,
		"list configmaps y in ns": 0, "patch configmaps y in ns": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// wide is a log of a user who may list Secrets, and get Namespaces, everywhere and in "ns", and who lists Secrets in
// "ns" and reads the Namespace.
const wide = `{"verb":"create","user":{"username":"root"},"objectRef":{"resource":"clusterroles","name":"w","apiGroup":"rbac.authorization.k8s.io"},"responseStatus":{"code":201},"requestObject":{"kind":"ClusterRole","metadata":{"name":"w"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["list"]},{"apiGroups":[""],"resources":["namespaces"],"verbs":["get"]}]},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"create","user":{"username":"root"},"objectRef":{"resource":"clusterrolebindings","name":"w","apiGroup":"rbac.authorization.k8s.io"},"responseStatus":{"code":201},"requestObject":{"kind":"ClusterRoleBinding","metadata":{"name":"w"},"roleRef":{"kind":"ClusterRole","name":"w"},"subjects":[{"kind":"User","name":"u"}]},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"create","user":{"username":"root"},"objectRef":{"resource":"rolebindings","namespace":"ns","name":"w","apiGroup":"rbac.authorization.k8s.io"},"responseStatus":{"code":201},"requestObject":{"kind":"RoleBinding","metadata":{"name":"w"},"roleRef":{"kind":"ClusterRole","name":"w"},"subjects":[{"kind":"User","name":"u"}]},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"list","user":{"username":"u"},"objectRef":{"resource":"secrets","namespace":"ns"},"responseStatus":{"code":200},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"get","user":{"username":"u"},"objectRef":{"resource":"namespaces","namespace":"ns","name":"ns"},"responseStatus":{"code":200},"annotations":{"authorization.k8s.io/decision":"allow"}}
`

// TestWideRightsNeedWideUses: what is done in a namespace where a user has rights is no use of a cluster-wide one;
// what is done in all of them, or in another, is.
func TestWideRightsNeedWideUses(t *testing.T) {
	secrets := Right{Verb: "list", Resource: "secrets"}
	read := func(more string) *Log {
		path := filepath.Join(t.TempDir(), "audit.log")
		require.NoError(t, os.WriteFile(path, []byte(wide+more), 0o600))
		l := new(Log)
		require.NoError(t, l.Read(path))
		return l
	}
	l := read("")
	for r, want := range map[Right]int{
		secrets: 0,
		{Verb: "list", Resource: "secrets", Namespace: "ns"}: 1,
		{Verb: "get", Resource: "namespaces"}:                1,
	} {
		if got := l.Uses("u", r); got != want {
			t.Errorf("%s: %d uses, want %d", r, got, want)
		}
	}
	for _, where := range []string{"", `"namespace":"other",`} {
		done := `{"verb":"list","user":{"username":"u"},"objectRef":{` + where + `"resource":"secrets"},"responseStatus":{"code":200},"annotations":{"authorization.k8s.io/decision":"allow"}}` + "\n"
		if got := read(done).Uses("u", secrets); got != 1 {
			t.Errorf("%s with %s: %d uses, want 1", secrets, done, got)
		}
	}
}

func TestWildAndWrites(t *testing.T) {
	for r, want := range map[Right][2]bool{
		{Verb: "list", Resource: "pods"}:                                           {false, false},
		{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"}: {false, false},
		{Verb: "*", Resource: "pods"}:                                              {true, true},
		{Verb: "get", Resource: "*/status"}:                                        {true, false},
		{Verb: "delete", Resource: "pods"}:                                         {false, true},
		{Verb: "escalate", Resource: "roles"}:                                      {false, true},
		{Verb: "get", Group: "*", Resource: "x"}:                                   {true, false},
	} {
		if got := [2]bool{r.Wild(), r.Writes()}; got != want {
			t.Errorf("%s: wild, writes: %v, want %v", r, got, want)
		}
	}
}

func TestDamagedLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(path, []byte("{\"verb\":"), 0o600))
	if err := new(Log).Read(path); err == nil {
		t.Error("a line that was cut off is taken for nothing")
	}
	if err := new(Log).Read(path + ".none"); err == nil {
		t.Error("a log that is not there is taken for an empty one")
	}
}
