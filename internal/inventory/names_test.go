package inventory

import (
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
)

// TestNamesFromContext has the contexts that the tools of providers write.
func TestNamesFromContext(t *testing.T) {
	for _, c := range []struct{ context, entry, name, longer string }{
		{"arn:aws:eks:eu-west-1:123456789012:cluster/prod-eu", "arn:aws:eks:eu-west-1:123456789012:cluster/prod-eu", "prod-eu", "eu-west-1-prod-eu"},
		{"arn:aws-us-gov:eks:us-gov-west-1:123456789012:cluster/prod", "", "prod", "us-gov-west-1-prod"},
		{"me@arn:aws:eks:eu-west-1:123456789012:cluster/x", "", "x", "eu-west-1-x"},
		{"ci@prod.eu-west-1.eksctl.io", "prod.eu-west-1.eksctl.io", "prod", "prod-eu-west-1"},
		{"gke_shop-123_europe-west1_prod", "gke_shop-123_europe-west1_prod", "prod", "europe-west1-prod"},
		{"prod-admin", "prod", "prod", "prod-admin"},
		{"kubernetes-admin@kubernetes", "kubernetes", "kubernetes-admin-kubernetes", ""},
		{"admin@prod", "prod", "prod", "admin-prod"},
		{"kind-a", "kind-a", "kind-a", ""},
		{"k3d-a", "k3d-a", "k3d-a", ""},
		{"a", "a", "a", ""},
		{"prod-eu", "prod-eu", "prod-eu", ""},
		{"shop/api-prod-example-com:6443/alice", "api-prod-example-com:6443", "api-prod-example-com", "shop-api-prod-example-com-alice"},
		{"tele.example.com-prod", "tele.example.com", "tele-example-com-prod", ""},
		{"admin@Prod_1", "", "prod-1", "admin-prod-1"},
		{"", "", "cluster", ""},
		{"---", "", "cluster", ""},
		{"über", "", "ber", ""},
		{strings.Repeat("a", 32) + "-production-of-the-shop", "", strings.Repeat("a", 32) + "-f13669", ""},
	} {
		name, longer := NamesFromContext(c.context, c.entry)
		if name != c.name || longer != c.longer {
			t.Errorf("%q: %q and %q, want %q and %q", c.context, name, longer, c.name, c.longer)
		}
		if strings.Contains(name+longer, "123456789012") {
			t.Errorf("%q: %q and %q have the number of the account", c.context, name, longer)
		}
	}
}

// FuzzNamesFromContext checks that every context gives valid names, and different ones.
func FuzzNamesFromContext(f *testing.F) {
	f.Add("gke_project_europe-west1-b_cluster", "x")
	f.Add("/a/", "")
	f.Fuzz(func(t *testing.T, context, entry string) {
		name, longer := NamesFromContext(context, entry)
		assert.NoError(t, records.ValidateName(name))
		if longer != "" {
			assert.NoError(t, records.ValidateName(longer))
			if longer == name {
				t.Errorf("the longer name is %q, too", name)
			}
		}
	})
}
