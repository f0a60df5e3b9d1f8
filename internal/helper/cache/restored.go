package cache

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// checkRestored returns the error that makes an informer list again if the API server is at an older version than the
// one from which a watch is to continue. This happens after etcd was restored from a backup: an API server accepts such
// a watch and sends none of the changes up to that version (cacheWatcher.process in k8s.io/apiserver), so that the
// informer would keep objects that no longer exist. A list of at most one object from the server's cache returns its
// version. If an API server lags behind another one, the cost is one list.
func checkRestored[L List](ctx context.Context, of Resource[L], s Selection, o metav1.ListOptions) error {
	if o.ResourceVersion == "" || o.ResourceVersion == "0" || o.SendInitialEvents != nil {
		return nil // no watch is continued
	}
	list, err := of.List(ctx, s.Options(metav1.ListOptions{ResourceVersion: "0", Limit: 1}))
	if err != nil {
		return err
	}
	order, err := resourceversion.CompareResourceVersion(list.GetResourceVersion(), o.ResourceVersion)
	if err != nil || order >= 0 {
		return nil //nolint:nilerr // only tests have versions that are no numbers
	}
	return apierrors.NewResourceExpired("the API server is at version " + list.GetResourceVersion() + ", before " + o.ResourceVersion)
}
