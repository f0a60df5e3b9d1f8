package inventory

import (
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
)

func TestNameFromContext(t *testing.T) {
	for context, want := range map[string]string{
		"milan":            "milan",
		"admin@Prod_1":     "admin-prod-1",
		"":                 "cluster",
		"---":              "cluster",
		"über":             "ber",
		"kubernetes/admin": "kubernetes-admin",
		"arn:aws:eks:eu-west-1:123456789012:cluster/production": "u-west-1-123456789012-cluster-production",
	} {
		got := NameFromContext(context)
		if err := records.ValidateName(got); err != nil || got != want {
			t.Errorf("%q: %q, want %q, %v", context, got, want, err)
		}
	}
}

func FuzzNameFromContext(f *testing.F) {
	f.Add("gke_project_europe-west1-b_cluster")
	f.Fuzz(func(t *testing.T, context string) {
		assert.NoError(t, records.ValidateName(NameFromContext(context)))
	})
}
