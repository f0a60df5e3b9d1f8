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

// checkInstaller checks whether the user has all permissions of init. A user who may connect but not install can use an
// existing installation: it is then left unchanged.
func (s *site) checkInstaller(ctx context.Context) error {
	err := inventory.CheckPermissions(ctx, s.cluster, templates.Administer)
	var refused *kube.PermissionError
	if !s.connecting || !errors.As(err, &refused) {
		return err
	}
	set, errFind := kube.Find[*appsv1.DaemonSet](ctx, s.cluster, records.NodeName)
	if errFind != nil && !apierrors.IsForbidden(errFind) {
		return errFind
	}
	if set == nil || set.Annotations[templates.AnnotationDigest] == "" {
		return err // lists all missing permissions: those of installing include those of connecting
	}
	needed, errFind := inventory.NeededPermissions(s.cluster.Namespace, templates.Operate)
	if errFind != nil {
		return errFind
	}
	refused.Missing = slices.DeleteFunc(refused.Missing, func(p kube.Permission) bool { return !slices.Contains(needed, p) })
	if len(refused.Missing) > 0 {
		return refused
	}
	s.usableDigest = set.Annotations[templates.AnnotationDigest]
	return nil
}

// keepInstallation rejects an existing installation that differs from the one that this run would create.
func (s *site) keepInstallation() error {
	base, err := s.base()
	if err != nil || templates.Digest(base) == s.usableDigest {
		return err
	}
	return hint.With(
		fmt.Errorf("the installation in cluster %q differs from that of this liqoctl with image %s, and you may not change it", s.cluster.Context, s.options.Image),
		"use the liqoctl and --image it was made with, or ask for: liqoctl network init --update")
}
