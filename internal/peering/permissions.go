package peering

import (
	"context"
	"errors"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// checkPermissions asks whether the user may do all that operations do in a cluster. Who may do everything is
// asked once; everybody else gets a list of all that is missing. Objects that not every installation has are given.
func checkPermissions(ctx context.Context, c *cluster.Cluster, also ...cluster.Object) error {
	everything := []cluster.Permission{{Verb: "*", Group: "*", Resource: "*"}}
	err := c.CheckPermissions(ctx, everything)
	var refused *cluster.PermissionError
	if !errors.As(err, &refused) {
		return err
	}
	needed, err := neededPermissions(c.Namespace, also...)
	if err != nil {
		return err
	}
	return c.CheckPermissions(ctx, needed)
}

// neededPermissions derives from the objects of an installation with a peering what it takes to make them, to
// follow them and to remove them.
func neededPermissions(namespace string, also ...cluster.Object) ([]cluster.Permission, error) {
	const any = "any" // image and peering do not matter to permissions
	objects, err := templates.Base(templates.BaseValues{Namespace: namespace, Image: any})
	if err != nil {
		return nil, err
	}
	gateway, err := templates.Gateway(templates.GatewayValues{
		Namespace: namespace, Peering: any, Image: any, Role: records.Server, Implementation: records.Auto,
		Service: templates.ServiceValues{Type: corev1.ServiceTypeClusterIP},
	})
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: any}
	objects = slices.Concat(objects, gateway, also)
	objects = append(objects, &corev1.Secret{ObjectMeta: meta}, &coordinationv1.Lease{ObjectMeta: meta})
	needed, err := cluster.Permissions(objects, "get", "list", "watch", "create", "patch", "delete")
	if err != nil {
		return nil, err
	}
	needed = append(needed, cluster.DiscoveryPermissions()...)
	return append(needed,
		// The registry of addresses is compared and swapped.
		cluster.Permission{Verb: "update", Resource: "configmaps", Namespace: namespace},
		// They tell why a pod was refused.
		cluster.Permission{Verb: "list", Resource: "events", Namespace: namespace}), nil
}
