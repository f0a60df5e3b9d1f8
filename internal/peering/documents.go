package peering

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
)

// readFabric returns the cluster's fabric; nil where liqonet is not installed.
func readFabric(ctx context.Context, c *cluster.Cluster) (*records.Fabric, error) {
	object, err := c.ConfigMaps().Get(ctx, records.FabricName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s of cluster %q: %w", c.Namespace, records.FabricName, c.Context, err)
	}
	f, err := records.Decode[records.Fabric](object.Data[records.DataKey])
	if err != nil {
		return nil, damaged(c, object, err)
	}
	return &f, nil
}

// readPeerings returns the peerings of the cluster, sorted by name. What a ConfigMap is follows from its name.
func readPeerings(ctx context.Context, c *cluster.Cluster) ([]records.Peering, error) {
	list, err := c.Kube.CoreV1().ConfigMaps(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the peerings of cluster %q: %w", c.Context, err)
	}
	var peerings []records.Peering
	for i := range list.Items {
		id, ok := records.IdentityOf(list.Items[i].Name)
		if !ok || id.Component != records.ComponentPeering {
			continue
		}
		p, err := records.Decode[records.Peering](list.Items[i].Data[records.DataKey])
		if err == nil && p.Name != id.Peering {
			err = fmt.Errorf("it is the record of peering %q", p.Name)
		}
		if err != nil {
			return nil, damaged(c, &list.Items[i], err)
		}
		peerings = append(peerings, p)
	}
	slices.SortFunc(peerings, func(a, b records.Peering) int { return strings.Compare(a.Name, b.Name) })
	return peerings, nil
}

// readPeering returns one peering; nil where there is none of that name.
func readPeering(ctx context.Context, c *cluster.Cluster, name string) (*records.Peering, error) {
	object, err := c.ConfigMaps().Get(ctx, records.PeeringName(name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s of cluster %q: %w", c.Namespace, records.PeeringName(name), c.Context, err)
	}
	p, err := records.Decode[records.Peering](object.Data[records.DataKey])
	if err != nil {
		return nil, damaged(c, object, err)
	}
	return &p, nil
}

// listLeases returns the Leases of the cluster's nodes.
func listLeases(ctx context.Context, c *cluster.Cluster) ([]*coordinationv1.Lease, error) {
	list, err := c.Kube.CoordinationV1().Leases(c.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: selector(records.ComponentNode)})
	if err != nil {
		return nil, fmt.Errorf("list the node reports of cluster %q: %w", c.Context, err)
	}
	leases := make([]*coordinationv1.Lease, len(list.Items))
	for i := range list.Items {
		leases[i] = &list.Items[i]
	}
	return leases, nil
}

// nodeReports decodes the reports that Leases carry. A Lease without one belongs to a helper that has only begun.
func nodeReports(leases []*coordinationv1.Lease) ([]records.Node, error) {
	var nodes []records.Node
	for _, lease := range leases {
		text, ok := lease.Annotations[records.AnnotationNode]
		if !ok {
			continue
		}
		n, err := records.DecodeReport(lease.Name, lease.Spec.HolderIdentity, text)
		if err != nil {
			return nil, fmt.Errorf("read Lease %s/%s: %w", lease.Namespace, lease.Name, err)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// readHolders returns the nodes that hold an internal address, by name, each with what it reports.
func readHolders(ctx context.Context, c *cluster.Cluster) (map[string]*records.Node, error) {
	leases, err := listLeases(ctx, c)
	if err != nil {
		return nil, err
	}
	return holders(leases)
}

// holders are the nodes that Leases belong to. One whose helper has only begun has no report: nil.
func holders(leases []*coordinationv1.Lease) (map[string]*records.Node, error) {
	nodes := make(map[string]*records.Node)
	for _, lease := range leases {
		if name := lease.Spec.HolderIdentity; name != nil {
			nodes[*name] = nil
		}
	}
	reports, err := nodeReports(leases)
	for _, n := range reports {
		nodes[n.Name] = &n
	}
	return nodes, err
}

// readStatus decodes what a gateway reports; nil where none has reported yet.
func readStatus(object *corev1.ConfigMap) (*records.Status, error) {
	text, ok := object.Data[records.DataKey]
	if !ok {
		return nil, nil
	}
	s, err := records.Decode[records.Status](text)
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", object.Namespace, object.Name, err)
	}
	return &s, nil
}

// same reports whether two records say the same.
func same[T records.Document](a, b T) bool {
	one, err := records.Encode(a)
	if err != nil {
		return false
	}
	other, err := records.Encode(b)
	return err == nil && one == other
}

// swapRecord brings a record into the state that want computes from the one in the cluster (nil: there is none), provided
// that nobody changes it in between: else want is called again. object is its ConfigMap, without the record. Its
// AnnotationRun counts where it is created.
func swapRecord[T records.Document](
	ctx context.Context, c *cluster.Cluster, object *corev1.ConfigMap, want func(live *T) (T, error),
) (cluster.Change, error) {
	return cluster.Swap(ctx, c, object, func(live *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		var record *T
		if live != nil {
			r, err := records.Decode[T](live.Data[records.DataKey])
			if err != nil {
				return nil, damaged(c, live, err)
			}
			record = &r
			delete(object.Annotations, records.AnnotationRun)
		}
		wanted, err := want(record)
		if err != nil {
			return nil, err
		}
		text, err := records.Encode(wanted)
		if err != nil && c.IsDryRun() {
			text, err = records.Draft(wanted) // what is missing comes later
		}
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s of cluster %q: %w", object.Namespace, object.Name, c.Context, err)
		}
		object.Data = map[string]string{records.DataKey: text}
		return object, nil
	})
}

// newRun names a run of liqoctl: what it creates bears the name, as the answer to a request that was carried out can be lost.
func newRun() string { return rand.Text() }

// createdBy marks a ConfigMap as created by a run.
func createdBy(object *corev1.ConfigMap, run string) *corev1.ConfigMap {
	if run != "" {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, records.AnnotationRun, run)
	}
	return object
}

// ofOthers reports whether a record is there that another run has created.
func ofOthers(ctx context.Context, c *cluster.Cluster, name, run string) (bool, error) {
	object, err := c.Kube.CoreV1().ConfigMaps(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read ConfigMap %s/%s of cluster %q: %w", c.Namespace, name, c.Context, err)
	}
	return object.Annotations[records.AnnotationRun] != run, nil
}

// damaged says that a document cannot be read, and that nothing will write over it.
func damaged(c *cluster.Cluster, object *corev1.ConfigMap, err error) error {
	return withHint(fmt.Errorf("read ConfigMap %s/%s of cluster %q: %w", object.Namespace, object.Name, c.Context, err), records.DamageHint)
}

// fabricMap is the ConfigMap of a fabric, without the record.
func fabricMap(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: records.FabricName, Namespace: namespace,
		Labels: map[string]string{records.LabelComponent: records.ComponentFabric},
	}}
}

// fabricObject is the ConfigMap of a fabric.
func fabricObject(namespace string, f records.Fabric) (cluster.Object, error) {
	text, err := records.Encode(f)
	if err != nil {
		return nil, fmt.Errorf("fabric of cluster %q: %w", f.Name, err)
	}
	object := fabricMap(namespace)
	object.Data = map[string]string{records.DataKey: text}
	return object, nil
}

// peeringMap is the ConfigMap of a peering, without the record.
func peeringMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: peeringMeta(namespace, records.PeeringName(name), name)}
}

// peeringObject is the ConfigMap of a peering.
func peeringObject(namespace string, p records.Peering) (cluster.Object, error) {
	text, err := records.Encode(p)
	if err != nil {
		return nil, fmt.Errorf("peering %q: %w", p.Name, err)
	}
	object := peeringMap(namespace, p.Name)
	object.Data = map[string]string{records.DataKey: text}
	return object, nil
}

// peeringMeta is what a peering's document and its keys have in common.
func peeringMeta(namespace, name, peering string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{
		records.LabelComponent: records.ComponentPeering, records.LabelPeering: peering,
	}}
}
