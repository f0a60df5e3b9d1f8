package fakecluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/observe/read"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

// In returns the cluster with another namespace for liqonet.
func (c *Cluster) In(namespace string) *kube.Cluster {
	other := *c.Cluster
	other.Namespace = namespace
	return &other
}

// Add stores an object.
func (c *Cluster) Add(t *testing.T, o runtime.Object) {
	t.Helper()
	require.NoError(t, c.Fake.Tracker().Add(o))
}

// AddNode creates a node without a helper.
func (c *Cluster) AddNode(t *testing.T, n Node) {
	t.Helper()
	_, err := c.Kube.CoreV1().Nodes().Create(t.Context(), n.Object(), metav1.CreateOptions{})
	require.NoError(t, err)
}

// Join creates a node whose helper reports.
func (c *Cluster) Join(t *testing.T, n Node) {
	t.Helper()
	c.AddNode(t, n)
	c.Set(func() { c.Nodes = append(c.Nodes, n.Name) })
}

// Leave deletes a node, with its helper.
func (c *Cluster) Leave(t *testing.T, name string) {
	t.Helper()
	c.Set(func() { c.Nodes = slices.DeleteFunc(c.Nodes, func(n string) bool { return n == name }) })
	assert.NoError(t, c.Kube.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// UpdateNode replaces a node.
func (c *Cluster) UpdateNode(t *testing.T, n Node) {
	t.Helper()
	_, err := c.Kube.CoreV1().Nodes().Update(t.Context(), n.Object(), metav1.UpdateOptions{})
	assert.NoError(t, err)
}

// AddAPIServer adds an address of the API server.
func (c *Cluster) AddAPIServer(t *testing.T, address string) {
	t.Helper()
	c.Add(t, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kubernetes"},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{address}}},
	})
}

// ReportUsed has only this node report ranges as used, such as "10.9.0.0/16 route".
func (c *Cluster) ReportUsed(node string, ranges ...string) {
	var s records.Surroundings
	for _, text := range ranges {
		prefix, use, _ := strings.Cut(text, " ")
		s.Ranges = append(s.Ranges, records.UsedRange{Range: netip.MustParsePrefix(prefix), Use: records.Use(use)})
	}
	c.Set(func() { c.Surroundings = map[string]records.Surroundings{node: s} })
}

// Forbid refuses all requests for a resource.
func (c *Cluster) Forbid(resource string) { c.ForbidOutside("*", resource, "\x00") }

// ForbidOutside refuses requests of a verb for a resource, except in a namespace and for its cluster-wide objects.
func (c *Cluster) ForbidOutside(verb, resource, namespace string) {
	c.Fake.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		get, ok := a.(clienttesting.GetAction)
		if a.GetNamespace() == namespace || ok && strings.Contains(get.GetName(), ":"+namespace+":") {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
	})
}

// ChangeRegistry changes the reservations.
func (c *Cluster) ChangeRegistry(t *testing.T, change func(*ipam.Registry) error) {
	t.Helper()
	require.NoError(t, inventory.UpdateReservations(t.Context(), c.Cluster, change))
}

// ChangePeering changes the record of a peering.
func (c *Cluster) ChangePeering(t *testing.T, peering string, change func(*records.Peering)) {
	t.Helper()
	changeRecord(t, c, records.PeeringName(peering), change)
}

// ChangeStatus changes the report of the first gateway of a peering.
func (c *Cluster) ChangeStatus(t *testing.T, peering string, change func(*records.Status)) {
	t.Helper()
	changeRecord(t, c, FirstGateway(peering).StatusName(), change)
}

func changeRecord[D records.Document](t *testing.T, c *Cluster, name string, change func(*D)) {
	t.Helper()
	_, err := inventory.Swap(t.Context(), c.Cluster, name, func(live *D) (D, error) {
		change(live)
		return *live, nil
	})
	assert.NoError(t, err)
}

// ChangeNodeReport changes the report of the first node.
func (c *Cluster) ChangeNodeReport(t *testing.T, change func(*records.Node)) {
	t.Helper()
	leases, err := inventory.Leases(t.Context(), c.Cluster)
	require.NoError(t, err)
	n, err := records.Decode[records.Node](leases[0].Annotations[records.AnnotationNode])
	require.NoError(t, err)
	change(&n)
	require.NoError(t, c.lease(t.Context(), n, false))
}

// Peering returns the record of the only peering.
func (c *Cluster) Peering(t *testing.T) records.Peering {
	t.Helper()
	all, err := inventory.Peerings(t.Context(), c.Cluster)
	if err != nil || len(all) != 1 {
		t.Fatalf("peerings of %s: %v, %v", c.Context, all, err)
	}
	return all[0]
}

// Traces returns the names of the peerings that have any object or reservation.
func (c *Cluster) Traces(t *testing.T) []string {
	t.Helper()
	all, err := inventory.Traces(t.Context(), c.Cluster)
	require.NoError(t, err)
	names := make([]string, 0, len(all))
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names
}

// ExpectNoTraces fails for clusters in which a peering has objects or reservations.
func ExpectNoTraces(t *testing.T, clusters ...*Cluster) {
	t.Helper()
	for _, c := range clusters {
		if left := c.Traces(t); len(left) > 0 {
			t.Errorf("left in cluster %s: of peerings %v", c.Context, left)
		}
	}
}

// ExposedHosts returns the reservations for exposed hosts of a peering, as "ADDRESS for HOST".
func (c *Cluster) ExposedHosts(t *testing.T, peering string) (held []string) {
	t.Helper()
	r, err := inventory.Reservations(t.Context(), c.Cluster)
	require.NoError(t, err)
	for _, h := range r.Held(ipam.Peering(peering), ipam.ExposedHost) {
		held = append(held, h.Range.Addr().String()+" for "+h.Real.Addr().String())
	}
	return held
}

// ExpectExposed compares the reservations for exposed hosts of peering b, and expects no findings of choose.Check.
func (c *Cluster) ExpectExposed(t *testing.T, want ...string) {
	t.Helper()
	if got := c.ExposedHosts(t, "b"); !slices.Equal(got, want) {
		t.Errorf("reserved %q, want %q", got, want)
	}
	if found := c.Findings(t); len(found) > 0 {
		t.Errorf("findings: %q", found)
	}
}

// Findings returns those of choose.Check as text, and expects each to have a hint.
func (c *Cluster) Findings(t *testing.T) []string {
	t.Helper()
	found, err := read.Take(t.Context(), c.Cluster, observe.Records, observe.Objects, observe.Keys, observe.Platform).Reservations()
	require.NoError(t, err)
	lines := make([]string, len(found))
	for i, f := range found {
		if lines[i] = f.String(); f.Hint == "" {
			t.Errorf("%s: no hint", f)
		}
	}
	return lines
}

// Contents returns all objects that liqoctl writes in a cluster, as text by object.
func Contents(t *testing.T, c *kube.Cluster) map[string]string {
	t.Helper()
	objects, err := c.List(t.Context(), records.LabelComponent)
	require.NoError(t, err)
	all := make(map[string]string)
	for _, o := range objects {
		if component := o.GetLabels()[records.LabelComponent]; component == records.ComponentNode || component == records.ComponentStatus {
			continue // written by helpers
		}
		o.SetManagedFields(nil)
		text, err := yaml.Marshal(o)
		require.NoError(t, err)
		all[fmt.Sprintf("%T %s", o, o.GetName())] = string(text)
	}
	return all
}
