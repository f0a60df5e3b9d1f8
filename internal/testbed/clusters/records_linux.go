package clusters

import (
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

// ConfigMap returns the object with a record, or with any text.
func ConfigMap(name, text string) *corev1.ConfigMap {
	id, _ := records.IdentityOf(name)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: records.DefaultNamespace, Labels: id.Labels()},
		Data:       map[string]string{records.DataKey: text},
	}
}

// Write writes a record like the CLI; nil creates the empty object that a gateway fills.
func (c *Cluster) Write(name string, record records.Document) {
	c.t.Helper()
	cm := ConfigMap(name, "")
	if cm.Data = nil; record != nil {
		text, err := records.Encode(record)
		require.NoError(c.t, err)
		cm.Data = map[string]string{records.DataKey: text}
	}
	c.Create(cm)
}

// WriteObjects writes the empty objects that a gateway fills.
func (c *Cluster) WriteObjects(g *Gateway) {
	c.t.Helper()
	c.Write(g.ID().Name(), nil)
	c.Write(g.ID().StatusName(), nil)
}

// WriteFabric writes the record of the cluster itself.
func (c *Cluster) WriteFabric() {
	c.t.Helper()
	c.Write(records.FabricName, records.Fabric{
		Version: records.SchemaVersion, ClusterID: "id-" + c.Name, Name: c.Name, PodCIDRs: []netip.Prefix{PodCIDR},
		ExternalCIDRs: []netip.Prefix{ExternalCIDR}, InternalCIDRs: []netip.Prefix{InternalCIDR},
		Overlay: records.Overlay{Kind: c.Kinds.Overlay, Port: OverlayPorts[c.Number-1]}, MTU: LinkMTU,
	})
}

// Create creates an object.
func (c *Cluster) Create(o runtime.Object) {
	c.t.Helper()
	require.NoError(c.t, c.API.Tracker().Add(o))
}

// Get returns an object with a record.
func (c *Cluster) Get(name string) *corev1.ConfigMap {
	c.t.Helper()
	cm, err := c.API.CoreV1().ConfigMaps(records.DefaultNamespace).Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return cm
}

// Put replaces an object with a record.
func (c *Cluster) Put(cm *corev1.ConfigMap) {
	c.t.Helper()
	_, err := c.API.CoreV1().ConfigMaps(cm.Namespace).Update(c.t.Context(), cm, metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

// Delete deletes an object with a record.
func (c *Cluster) Delete(name string) {
	c.t.Helper()
	require.NoError(c.t, c.API.CoreV1().ConfigMaps(records.DefaultNamespace).Delete(c.t.Context(), name, metav1.DeleteOptions{}))
}

// Edit changes the text of a record, and returns the object as it was.
func (c *Cluster) Edit(name string, change func(string) string) *corev1.ConfigMap {
	c.t.Helper()
	old := c.Get(name)
	changed := old.DeepCopy()
	changed.Data[records.DataKey] = change(old.Data[records.DataKey])
	c.Put(changed)
	return old
}

// Damage makes a record unreadable, and returns the object as it was.
func (c *Cluster) Damage(name string) *corev1.ConfigMap {
	c.t.Helper()
	return c.Edit(name, func(string) string { return "x" })
}

// Rewrite replaces the record of the peering.
func (c *Cluster) Rewrite(p records.Peering) {
	c.t.Helper()
	text, err := records.Encode(p)
	require.NoError(c.t, err)
	c.Edit(records.PeeringName(p.Name), func(string) string { return text })
}

// StatusOf returns the report of a gateway.
func (c *Cluster) StatusOf(g *Gateway) (records.Status, error) {
	return records.Decode[records.Status](c.Get(g.ID().StatusName()).Data[records.DataKey])
}

// RenewStatus has a gateway write its report, which it does immediately if the report is damaged.
func (c *Cluster) RenewStatus(g *Gateway) { c.Damage(g.ID().StatusName()) }

// Reports returns the reports of the nodes, by name.
func (c *Cluster) Reports() (map[string]records.Node, error) {
	leases, err := c.API.CoordinationV1().Leases(records.DefaultNamespace).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	reports := map[string]records.Node{}
	for _, l := range leases.Items {
		n, err := records.Decode[records.Node](l.Annotations[records.AnnotationNode])
		if err != nil {
			return nil, fmt.Errorf("report in Lease %s: %w", l.Name, err)
		}
		reports[n.Name] = n
	}
	if len(reports) < len(c.Nodes) {
		return nil, errors.New("some nodes have not reported")
	}
	return reports, nil
}
