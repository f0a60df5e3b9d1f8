package inventory

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/ipam/store"
)

// Reservations returns a cluster's reservations, or an empty registry with the default pools if there are none.
func Reservations(ctx context.Context, c *kube.Cluster) (*ipam.Registry, error) {
	object, err := kube.Find[*corev1.ConfigMap](ctx, c, records.IPAMName)
	if err != nil {
		return nil, ExplainAddresses(c.Context, err)
	}
	registry, _, err := registryOf(c, object)
	return registry, ExplainAddresses(c.Context, err)
}

// UpdateReservations changes a cluster's reservations by compare-and-swap. It calls change again after a conflict with
// another writer; change must therefore have no other effect. If nothing changes, nothing is written.
func UpdateReservations(ctx context.Context, c *kube.Cluster, change func(*ipam.Registry) error) error {
	object := &corev1.ConfigMap{ObjectMeta: Meta(c.Namespace, records.IPAMName)}
	_, err := kube.Swap(ctx, c, object, func(live *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		registry, unknown, err := registryOf(c, live)
		if err != nil {
			return nil, err
		}
		before := store.Encode(registry)
		if err := change(registry); err != nil {
			return nil, err
		}
		text := store.Encode(registry)
		switch {
		case text == before:
			return nil, nil
		case len(unknown) > 0:
			return nil, fmt.Errorf("write ConfigMap %s/%s: %w", object.Namespace, object.Name, &records.UnknownFieldsError{Fields: unknown})
		case len(text) > records.MaxSize(records.ComponentIPAM):
			return nil, fmt.Errorf("write ConfigMap %s/%s: %d bytes of reservations: want at most %d", object.Namespace, object.Name, len(text), records.MaxSize(records.ComponentIPAM))
		}
		object.Data = map[string]string{records.DataKey: text}
		return object, nil
	})
	return ExplainAddresses(c.Context, err)
}

// registryOf decodes the registry in a ConfigMap; nil if it does not exist. unknown are fields of a later release.
func registryOf(c *kube.Cluster, object *corev1.ConfigMap) (registry *ipam.Registry, unknown []string, err error) {
	if object == nil {
		registry, err = ipam.New(ipam.DefaultPools()...)
		return registry, nil, err
	}
	registry, unknown, err = store.DecodeKnown(object.Data[records.DataKey])
	if err != nil {
		err = &UnreadableError{Context: c.Context, Namespace: c.Namespace, Err: err}
	}
	return registry, unknown, err
}

// UnreadableError reports that a cluster's reservations do not decode. They are never overwritten.
type UnreadableError struct {
	Context, Namespace string
	Err                error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read ConfigMap %s/%s: %v", e.Namespace, records.IPAMName, e.Err)
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// Hint suggests how to save a copy, and the next steps.
func (e *UnreadableError) Hint() string {
	return fmt.Sprintf("%s; keep a copy: kubectl --context %s -n %s get configmap %s -o yaml > ipam.yaml; liqoctl network reset --force removes it, and all peerings of this cluster with it",
		records.DamageHint, kube.ShellWord(e.Context), e.Namespace, records.IPAMName)
}

// ExplainAddresses adds a hint to an error of the registry.
func ExplainAddresses(context string, err error) error {
	if err == nil {
		return nil
	}
	conflict, conflicts := errors.AsType[*ipam.ConflictError](err)
	switch {
	case hint.Of(err) != "":
	case errors.Is(err, ipam.ErrNoneFree):
		err = hint.With(err, choose.NoneFreeHint)
	case conflicts:
		err = hint.With(err, "show the holder with liqoctl ipam list "+conflict.Held.Range.String())
	case apierrors.IsNotFound(err):
		err = hint.With(err, "install liqonet first: liqoctl network init")
	}
	return fmt.Errorf("addresses of cluster %q: %w", context, err)
}
