package inventory

import (
	"context"
	"errors"
	"slices"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/templates"
)

// CheckPermissions asks whether the user may do all that a level takes. Who may do everything is asked once;
// everybody else gets a list of all that is missing.
func CheckPermissions(ctx context.Context, c *cluster.Cluster, level templates.Level) error {
	everything := []cluster.Permission{{Verb: "*", Group: "*", Resource: "*"}}
	err := c.CheckPermissions(ctx, everything)
	var refused *cluster.PermissionError
	if !errors.As(err, &refused) {
		return err
	}
	needed, err := NeededPermissions(c.Namespace, level)
	if err != nil {
		return err
	}
	return c.CheckPermissions(ctx, needed)
}

// NeededPermissions are those of a level without which nothing works. What else a level may read outside the
// namespace makes discovery better, and it does without.
func NeededPermissions(namespace string, level templates.Level) ([]cluster.Permission, error) {
	local, wide, err := templates.Rules(namespace, level)
	if err != nil {
		return nil, err
	}
	_, discovery, err := templates.Rules(namespace, templates.Operate)
	if err != nil {
		return nil, err
	}
	better := cluster.Permissions(discovery, "")
	needed := append(cluster.Permissions(local, namespace), cluster.DiscoveryPermissions()...)
	for _, p := range cluster.Permissions(wide, "") {
		if !slices.Contains(better, p) {
			needed = append(needed, p)
		}
	}
	return needed, nil
}
