package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// checkInstaller asks whether the user may do all that init does. Who may not, but may connect, can do so where
// liqonet is installed: the site is then used as it is.
func (s *site) checkInstaller(ctx context.Context) error {
	err := inventory.CheckPermissions(ctx, s.cluster, templates.Administer)
	var refused *kube.PermissionError
	if !s.connecting || !errors.As(err, &refused) {
		return err
	}
	set, e := kube.Find[*appsv1.DaemonSet](ctx, s.cluster, records.NodeName)
	if e != nil && !apierrors.IsForbidden(e) {
		return e
	}
	if set == nil || set.Annotations[templates.AnnotationDigest] == "" {
		return err // all that installing takes is told, which includes what connecting does
	}
	needed, e := inventory.NeededPermissions(s.cluster.Namespace, templates.Operate)
	if e != nil {
		return e
	}
	refused.Missing = slices.DeleteFunc(refused.Missing, func(p kube.Permission) bool { return !slices.Contains(needed, p) })
	if len(refused.Missing) > 0 {
		return refused
	}
	s.standing = set.Annotations[templates.AnnotationDigest]
	return nil
}

// keepInstallation refuses to go on with an installation that is not the one that this run would make.
func (s *site) keepInstallation() error {
	base, err := s.base()
	if err != nil || templates.Digest(base) == s.standing {
		return err
	}
	return hint.With(
		fmt.Errorf("the installation in cluster %q differs from that of this liqoctl with image %s, and you may not change it", s.cluster.Context, s.options.Image),
		"use the liqoctl and --image it was made with, or ask for: liqoctl network init --update")
}
