package inventory

import (
	"fmt"
	"strings"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// maxName is the maximum length of a name derived from a kube context, as allowed by records.ValidateName.
const maxName = 40

// NameFromContext derives a cluster's name from its kube context, such as "admin-prod" from "admin@prod". Of a long
// context it keeps the end, where cloud providers put the cluster's own name.
func NameFromContext(context string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(context) {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			b.WriteRune(r)
			continue
		}
		if s := b.String(); s != "" && !strings.HasSuffix(s, "-") {
			b.WriteByte('-')
		}
	}
	name := b.String()
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	if name = strings.Trim(name, "-"); name == "" {
		return "cluster"
	}
	return name
}

// ChooseName returns the name of a cluster. A cluster with a name keeps it, because its peers use it.
func ChooseName(c *kube.Cluster, requested string, fabric *records.Fabric) (string, error) {
	switch {
	case fabric == nil && requested == "":
		return NameFromContext(c.Context), nil
	case fabric == nil:
		return requested, records.ValidateName(requested)
	case requested != "" && requested != fabric.Name:
		return "", hint.With(
			fmt.Errorf("cluster %q already has the name %q, not %q", c.Context, fabric.Name, requested),
			"leave the name out, or begin anew: liqoctl network reset --context "+kube.ShellWord(c.Context))
	}
	return fabric.Name, nil
}
