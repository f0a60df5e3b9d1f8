// Package inventory reads liqonet's objects in a cluster: records, reports of nodes and gateways, keys, reservations,
// installations, and remains of peerings. If an object cannot be read, the error contains its name and a hint. The
// package also writes records, by compare-and-swap. Their contents are determined elsewhere.
package inventory

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// Record returns the record in the ConfigMap with that name; nil if it does not exist.
func Record[T records.Document](ctx context.Context, c *kube.Cluster, name string) (*T, error) {
	object, err := kube.Find[*corev1.ConfigMap](ctx, c, name)
	if object == nil || err != nil {
		return nil, err
	}
	return DecodeRecord[T](c, object)
}

// DecodeRecord decodes the record in a ConfigMap. A record that does not decode must not be overwritten.
func DecodeRecord[T records.Document](c *kube.Cluster, object *corev1.ConfigMap) (*T, error) {
	record, err := records.Decode[T](object.Data[records.DataKey])
	if err != nil {
		return nil, Damaged(c, object.Name, err)
	}
	return &record, nil
}

// Damaged returns the error for a ConfigMap whose record does not decode.
func Damaged(c *kube.Cluster, name string, err error) error {
	return hint.With(fmt.Errorf("read ConfigMap %s/%s of cluster %q: %w", c.Namespace, name, c.Context, err), records.DamageHint)
}

// Fabric returns the cluster's fabric; nil if liqonet is not installed.
func Fabric(ctx context.Context, c *kube.Cluster) (*records.Fabric, error) {
	return Record[records.Fabric](ctx, c, records.FabricName)
}

// Peerings returns the peerings of the cluster, sorted by name. They are identified by the names of their ConfigMaps.
func Peerings(ctx context.Context, c *kube.Cluster) ([]records.Peering, error) {
	objects, err := kube.All[*corev1.ConfigMap](ctx, c, "")
	if err != nil {
		return nil, err
	}
	var peerings []records.Peering
	for _, object := range objects {
		id, ok := records.IdentityOf(object.Name)
		if !ok || id.Component != records.ComponentPeering {
			continue
		}
		p, err := DecodeRecord[records.Peering](c, object)
		switch {
		case err != nil && c.SharesDryRun():
			continue
		case err != nil:
			return nil, err
		}
		if p.Name != id.Peering {
			return nil, Damaged(c, object.Name, fmt.Errorf("it is the record of peering %q", p.Name))
		}
		peerings = append(peerings, *p)
	}
	slices.SortStableFunc(peerings, func(a, b records.Peering) int { return strings.Compare(a.Name, b.Name) })
	return peerings, nil
}

// FindPeering returns the first peering for which is returns true. If there is none, the error is a *NoPeeringError
// with the name, or reports that liqonet is installed in another namespace.
func FindPeering(ctx context.Context, c *kube.Cluster, name string, is func(records.Peering) bool) (records.Peering, error) {
	all, err := Peerings(ctx, c)
	if err != nil {
		return records.Peering{}, err
	}
	missing := &NoPeeringError{Context: c.Context, Name: name}
	for _, p := range all {
		if is(p) {
			return p, nil
		}
		missing.Known = append(missing.Known, p.Name)
	}
	if _, err := CheckElsewhere(ctx, c); err != nil {
		return records.Peering{}, err
	}
	return records.Peering{}, missing
}

// Same reports whether two records have the same encoding.
func Same[T records.Document](a, b T) bool {
	one, err := records.Encode(a)
	if err != nil {
		return false
	}
	other, err := records.Encode(b)
	return err == nil && one == other
}

// Swap writes the record that want computes from the current one (nil: it does not exist). If another writer changes it
// in between, want is called again. Fields of a later release are never deleted: see records.Replace. name is that of
// the record's ConfigMap.
func Swap[T records.Document](ctx context.Context, c *kube.Cluster, name string, want func(live *T) (T, error)) (kube.Change, error) {
	object := &corev1.ConfigMap{ObjectMeta: Meta(c.Namespace, name)}
	return kube.Swap(ctx, c, object, func(live *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		var record *T
		if live != nil {
			var err error
			if record, err = DecodeRecord[T](c, live); err != nil {
				return nil, err
			}
		}
		wanted, err := want(record)
		if err != nil {
			return nil, err
		}
		text, err := records.Encode(wanted)
		if err != nil && c.IsDryRun() {
			text, err = records.Draft(wanted) // missing values are known later
		}
		if err == nil && live != nil {
			text, err = records.Replace[T](live.Data[records.DataKey], text)
		}
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s of cluster %q: %w", object.Namespace, object.Name, c.Context, err)
		}
		object.Data = map[string]string{records.DataKey: text}
		return object, nil
	})
}

// Write replaces a record if it is unchanged since it was read (nil: it did not exist). Otherwise another writer has
// changed it, and the error is a kube.ErrConflict. name is that of the record's ConfigMap.
func Write[T records.Document](ctx context.Context, c *kube.Cluster, name string, read *T, wanted T) (kube.Change, error) {
	return Swap(ctx, c, name, func(live *T) (T, error) {
		unread := (live == nil) != (read == nil) || live != nil && !Same(*live, *read)
		if unread && (live == nil || !Same(*live, wanted)) { // wanted: a write whose response was lost
			return wanted, Conflict(c, "ConfigMap", name)
		}
		return wanted, nil
	})
}

// Conflict returns the kube.ErrConflict for an object in liqonet's namespace.
func Conflict(c *kube.Cluster, kind, name string) error {
	return hint.With(fmt.Errorf("%s %s/%s of cluster %q: %w", kind, c.Namespace, name, c.Context, kube.ErrConflict), "run this again")
}

// NewRun returns a new ID of a run of liqoctl. Objects are annotated with it, because the response to a create request
// can be lost.
func NewRun() string { return rand.Text() }

// DeleteOwn deletes the object of that type and name if it is annotated with the ID of the run, together with the
// objects in also.
func DeleteOwn[T interface {
	kube.Object
	comparable
}](ctx context.Context, c *kube.Cluster, name, run string, also ...kube.Object) error {
	object, err := kube.Find[T](ctx, c, name)
	var none T
	if err != nil || object == none || object.GetAnnotations()[records.AnnotationRun] != run {
		return err
	}
	_, err = c.Delete(ctx, append(also, object)...)
	return err
}

// Meta returns the name and the labels of an object that contains a record or belongs to one.
func Meta(namespace, name string) metav1.ObjectMeta {
	id, _ := records.IdentityOf(name)
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: id.Labels()}
}

// ReadInto adds a read to a group. The result is available when the group is done.
func ReadInto[T any](ctx context.Context, group *errgroup.Group, c *kube.Cluster, to *T, from func(context.Context, *kube.Cluster) (T, error)) {
	group.Go(func() (err error) {
		*to, err = from(ctx, c)
		return err
	})
}

// NoPeeringError reports that a cluster has no peering with that name.
type NoPeeringError struct {
	Context, Name string
	Known         []string
}

func (e *NoPeeringError) Error() string {
	return fmt.Sprintf("cluster %q has no peering %q", e.Context, e.Name)
}

// Hint lists the existing peerings.
func (e *NoPeeringError) Hint() string {
	if len(e.Known) == 0 {
		return "it has none: liqoctl network connect"
	}
	return "it has: " + strings.Join(e.Known, ", ")
}
