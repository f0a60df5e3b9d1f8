package inventory

import (
	"context"
	"errors"
	"slices"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/templates"
)

// CheckPermissions checks whether the user has all permissions of a level. For a user with all permissions it needs one
// request; otherwise the error lists all missing ones.
func CheckPermissions(ctx context.Context, c *kube.Cluster, level templates.Level) error {
	everything := []kube.Permission{{Verb: "*", Group: "*", Resource: "*"}}
	err := c.CheckPermissions(ctx, everything)
	if _, refused := errors.AsType[*kube.PermissionError](err); !refused {
		return err
	}
	needed, err := NeededPermissions(c.Namespace, level)
	if err != nil {
		return err
	}
	return c.CheckPermissions(ctx, needed)
}

// NeededPermissions returns the indispensable permissions of a level. The other permissions outside the namespace only
// improve discovery.
func NeededPermissions(namespace string, level templates.Level) ([]kube.Permission, error) {
	local, wide, err := templates.Rules(namespace, level)
	if err != nil {
		return nil, err
	}
	_, discovery, err := templates.Rules(namespace, templates.Operate)
	if err != nil {
		return nil, err
	}
	better := kube.Permissions(discovery, "")
	needed := append(kube.Permissions(local, namespace), kube.DiscoveryPermissions()...)
	for _, p := range kube.Permissions(wide, "") {
		if !slices.Contains(better, p) {
			needed = append(needed, p)
		}
	}
	return needed, nil
}
