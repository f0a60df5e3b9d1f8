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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// crowdsVariable lists the numbers of nodes of each cluster that TestLabCrowd connects, such as 10,100,1000.
const crowdsVariable = "LIQONET_CROWDS"

// restSample is how long the requests of clusters at rest are counted: some reports of a gateway.
const restSample = 30 * time.Second

// TestLabCrowd connects clusters of many simulated nodes, and prints the rows of a table in docs/limits.md.
func TestLabCrowd(t *testing.T) {
	stages := openStages(t)
	rows := []string{
		"| nodes of each cluster | connect, s | again, s | memory of liqoctl, MiB | status, s | writes a second at rest | bytes a second | status of a gateway, bytes | report of a node, bytes |",
		"|---|---|---|---|---|---|---|---|---|",
	}
	for _, size := range strings.Split(os.Getenv(crowdsVariable), ",") {
		nodes, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(size, func(t *testing.T) {
			for _, s := range stages {
				s.gather(t, nodes)
			}
			rows = append(rows, measureCrowd(t, stages, nodes))
		})
	}
	t.Log("\n" + strings.Join(rows, "\n"))
}

// gather adds nodes until there are so many.
func (s *stage) gather(t *testing.T, nodes int) {
	t.Helper()
	network := map[string]int{"a": 16, "b": 24}[s.name] // the second byte of their addresses
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := len(s.crowd) + 1; i < nodes; i++ {
		node := s.nodeObject()
		node.Name = fmt.Sprintf("%s-%d", s.name, i+1)
		node.Spec.PodCIDR = fmt.Sprintf("10.244.%d.%d/28", 1+i>>4, i&0xf<<4) // 4,080 of these
		node.Spec.PodCIDRs = []string{node.Spec.PodCIDR}
		node.Status.Addresses[0].Address = fmt.Sprintf("172.%d.%d.%d", network, i>>8, i&0xff)
		s.crowd = append(s.crowd, node.Name)
		group.Go(func() error {
			_, err := s.kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}) // with its status, as kubelets do
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
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

// measureCrowd connects clusters of so many nodes, and returns a row.
func measureCrowd(t *testing.T, stages []*stage, nodes int) string {
	var writes, bytes atomic.Int64
	for _, s := range stages {
		before := s.config
		s.config = rest.CopyConfig(before)
		s.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return traffic{next, &writes, &bytes} })
		defer func() { s.config = before }()
	}
	a := newAct(t, stages, fmt.Sprintf("crowd-%d", nodes))
	run := func(args ...string) (took time.Duration, memory int64) {
		start := time.Now()
		r := a.liqoctl.start(t, args...)
		if code := r.wait(t); code != 0 {
			t.Fatalf("liqoctl %s: exit code %d\n%s%s", args[1], code, &r.out, &r.said)
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
	seconds := restSample.Seconds() * float64(len(stages)) // of one cluster
	row := fmt.Sprintf("| %d | %.1f | %.1f | %d | %.1f | %.2f | %.0f | %d | %d |", nodes, connect.Seconds(), again.Seconds(), memory, status.Seconds(),
		float64(writes.Load())/seconds, float64(bytes.Load())/seconds, stages[0].reported(t, a.namespace), stages[0].leased(t, a.namespace))
	a.remove(t)
	return row
}

// reported is the size of what a gateway has reported, and leased of what a node has.
func (s *stage) reported(t *testing.T, namespace string) int {
	t.Helper()
	cm, err := s.kube.CoreV1().ConfigMaps(namespace).Get(t.Context(), first("b").StatusName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(cm.Data[records.DataKey])
}

func (s *stage) leased(t *testing.T, namespace string) int {
	t.Helper()
	leases, err := inventory.Leases(t.Context(), s.open(t, namespace))
	if err != nil || len(leases) == 0 {
		t.Fatal(leases, err)
	}
	return len(leases[0].Annotations[records.AnnotationNode])
}
