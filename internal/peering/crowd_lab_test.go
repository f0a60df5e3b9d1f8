//go:build lab

package peering

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// crowdsVariable has the numbers of nodes per cluster that TestLabCrowd connects, such as 10,100,1000.
const crowdsVariable = "LIQONET_CROWDS"

// restSample is the time in which the requests of idle clusters are counted: some reports of a gateway.
const restSample = 30 * time.Second

// TestLabCrowd connects clusters of many simulated nodes, and prints the rows of a table in
// docs/contributing/measurements.md.
func TestLabCrowd(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	rows := []string{
		"| nodes of each cluster | connect, s | again, s | memory of liqoctl, MiB | status, s | status of 100 peerings, s | diagnose of 100, s | writes a second at rest | bytes a second | status of a gateway, bytes | report of a node, bytes | reset, s |",
		"|---|---|---|---|---|---|---|---|---|---|---|---|",
	}
	for _, size := range strings.Split(os.Getenv(crowdsVariable), ",") {
		nodes, err := strconv.Atoi(size)
		require.NoError(t, err)
		t.Run(size, func(t *testing.T) {
			for _, s := range clusters {
				s.AddNodes(t, nodes)
			}
			rows = append(rows, measureCrowd(t, clusters, nodes))
		})
	}
	t.Log("\n" + strings.Join(rows, "\n"))
}

// traffic counts what helpers write.
type traffic struct {
	next          http.RoundTripper
	writes, bytes *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		c.writes.Add(1)
		c.bytes.Add(r.ContentLength)
	}
	return c.next.RoundTrip(r)
}

// measureCrowd connects clusters with that number of nodes, and returns a row.
func measureCrowd(t *testing.T, clusters []*fakecluster.Real, nodes int) string {
	var writes, bytes atomic.Int64
	for _, s := range clusters {
		before := s.Config
		s.Config = rest.CopyConfig(before)
		s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return traffic{next, &writes, &bytes} })
		defer func() { s.Config = before }()
	}
	a := newPair(t, clusters, fmt.Sprintf("crowd-%d", nodes))
	run := func(args ...string) (took time.Duration, memory int64) {
		start := time.Now()
		r := a.liqoctl.start(t, args...)
		if code := r.wait(t); code != 0 {
			t.Fatalf("liqoctl %s: exit code %d\n%s%s", args[1], code, &r.out, &r.stderr)
		}
		return time.Since(start), r.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	}
	connect, memory := run(append(a.connectArgs(), "--all-nodes")...)
	again, _ := run(append(a.connectArgs(), "--all-nodes")...)
	status, _ := run("network", "status", "--context", "a", "--namespace", a.namespace)
	writes.Store(0)
	bytes.Store(0)
	select {
	case <-time.After(restSample):
	case <-t.Context().Done():
	}
	seconds := restSample.Seconds() * float64(len(clusters)) // of one cluster
	atRest, sent := float64(writes.Load())/seconds, float64(bytes.Load())/seconds
	many := a.multiply(t, clusters[0])
	reported, leased := reported(t, clusters[0], a.namespace), leased(t, clusters[0], a.namespace)
	a.liqoctl.must(t, a.disconnectArgs()...)
	reset, _ := run(a.resetArgs("a")...)
	a.liqoctl.must(t, a.resetArgs("b")...)
	a.nothingLeft(t)
	return fmt.Sprintf("| %d | %.1f | %.1f | %d | %.1f | %.2f | %.2f | %.2f | %.0f | %d | %d | %.1f |", nodes, connect.Seconds(), again.Seconds(), memory, status.Seconds(),
		many[0].Seconds(), many[1].Seconds(),
		atRest, sent, reported, leased, reset.Seconds())
}

// reported returns the size of a gateway's status; leased returns that of a node's report.
func reported(t *testing.T, s *fakecluster.Real, namespace string) int {
	t.Helper()
	cm, err := s.Kube.CoreV1().ConfigMaps(namespace).Get(t.Context(), fakecluster.FirstGateway("b").StatusName(), metav1.GetOptions{})
	require.NoError(t, err)
	return len(cm.Data[records.DataKey])
}

func leased(t *testing.T, s *fakecluster.Real, namespace string) int {
	t.Helper()
	leases, err := inventory.Leases(t.Context(), s.Open(t, namespace))
	if err != nil || len(leases) == 0 {
		t.Fatal(leases, err)
	}
	return len(leases[0].Annotations[records.AnnotationNode])
}

// manyPeerings is the number of peerings of the cluster whose status and diagnosis are measured.
const manyPeerings = 100

// createCopy creates an object of peering b as that of another peering. The time of a report is some seconds ahead, so
// that it does not become stale while other objects are created.
func createCopy(t *testing.T, client dynamic.ResourceInterface, o unstructured.Unstructured, peering string) error {
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	var c unstructured.Unstructured
	if err := c.UnmarshalJSON([]byte(strings.NewReplacer(`-b"`, "-"+peering+`"`, `"b"`, `"`+peering+`"`, `name: b\n`, "name: "+peering+`\n`).Replace(string(text)))); err != nil {
		return err
	}
	if record, found, _ := unstructured.NestedString(c.Object, "data", records.DataKey); found && strings.HasPrefix(c.GetName(), "status-") {
		s, err := records.Decode[records.Status](record)
		if err != nil {
			return err
		}
		later := time.Since(s.Time) + health.ReportEvery
		s.Time, s.LastEcho, s.Session.Since = s.Time.Add(later), s.LastEcho.Add(later), s.Session.Since.Add(later)
		for i := range s.Nodes {
			s.Nodes[i].LastEcho, s.Nodes[i].LastProof = s.Nodes[i].LastEcho.Add(later), s.Nodes[i].LastProof.Add(later)
		}
		if record, err = records.Encode(s); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(c.Object, record, "data", records.DataKey); err != nil {
			return err
		}
	}
	if c.GetKind() == "Deployment" {
		// The fake kubelet would run their pods as well.
		if err := unstructured.SetNestedField(c.Object, int64(0), "spec", "replicas"); err != nil {
			return err
		}
	}
	c.SetResourceVersion("")
	c.SetUID("")
	_, err = client.Create(t.Context(), &c, metav1.CreateOptions{})
	return err
}

// multiply creates copies of a cluster's peering, measures the durations of status and diagnose, and removes the
// copies. These have records, keys and reports of all nodes, which are not stale, and all objects of their gateways
// except pods.
func (a pair) multiply(t *testing.T, s *fakecluster.Real) (took [2]time.Duration) {
	t.Helper()
	client, err := dynamic.NewForConfig(s.Config)
	require.NoError(t, err)
	selector := records.LabelPeering + "=b"
	var all []func() error
	var resources []dynamic.ResourceInterface
	for _, r := range []schema.GroupVersionResource{
		corev1.SchemeGroupVersion.WithResource("secrets"), corev1.SchemeGroupVersion.WithResource("serviceaccounts"), rbacv1.SchemeGroupVersion.WithResource("roles"),
		rbacv1.SchemeGroupVersion.WithResource("rolebindings"), appsv1.SchemeGroupVersion.WithResource("deployments"),
		corev1.SchemeGroupVersion.WithResource("configmaps"), // reports are last
	} {
		of := client.Resource(r).Namespace(a.namespace)
		resources = append(resources, of)
		found, err := of.List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		require.NoError(t, err)
		for _, o := range found.Items {
			for i := 1; i < manyPeerings; i++ {
				all = append(all, func() error { return createCopy(t, of, o, fmt.Sprintf("p%d", i)) })
			}
		}
	}
	group := new(errgroup.Group)
	group.SetLimit(16)
	for _, create := range all {
		group.Go(create)
	}
	require.NoError(t, group.Wait())
	defer func() {
		for i := 1; i < manyPeerings; i++ {
			for _, of := range resources {
				err := of.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: records.LabelPeering + "=" + fmt.Sprintf("p%d", i)})
				assert.NoError(t, err)
			}
		}
	}()
	for i, command := range []string{"status", "diagnose"} {
		start := time.Now()
		r := a.liqoctl.start(t, "network", command, "--context", "a", "--namespace", a.namespace)
		r.wait(t) // copies have no reservations, so they are not healthy
		took[i] = time.Since(start)
		if lines := strings.Count(r.out.String(), "\n"); lines < manyPeerings {
			t.Errorf("%s of %d peerings: %d lines\n%s", command, manyPeerings, lines, &r.stderr)
		}
	}
	return took
}
