package pathtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/inspect/trace"
	"liqonet.io/liqonet/internal/inspect/trace/probe"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/templates"
)

// inside is a probe in a namespace.
type inside struct {
	io.Reader
	io.WriteCloser

	cmd *exec.Cmd
}

// Close ends the probe, which reads its input until the end.
func (i inside) Close() error { return errors.Join(i.WriteCloser.Close(), i.cmd.Wait()) }

// tracer adds the objects that network trace reads to a cluster, and the namespaces of its pods.
func (c *testCluster) tracer(pods map[string]netns.Namespace) *kube.Cluster {
	c.t.Helper()
	for i, n := range c.Nodes {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: records.DefaultNamespace, Name: "node-" + c.NodeName(i), Labels: map[string]string{}},
			Spec:       corev1.PodSpec{NodeName: c.NodeName(i)}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		for _, label := range strings.Split(templates.NodePods(), ",") {
			key, value, _ := strings.Cut(label, "=")
			pod.Labels[key] = value
		}
		c.Create(pod)
		pods[c.Name+pod.Name] = n
	}
	for _, g := range c.Gateways {
		pods[c.Name+g.Pod()] = g.Namespace
	}
	c.API.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
	})
	return &kube.Cluster{Context: c.Name, Namespace: records.DefaultNamespace, Kube: c.API}
}

// TestTrace traces packets between pods of two clusters with two gateways each, with and without foreign rules that
// drop them.
func TestTrace(t *testing.T) {
	t.Parallel()
	a, b := severalGateways(t, records.ActiveActive)
	pods := map[string]netns.Namespace{}
	o := trace.Options{
		Local: a.tracer(pods), Remote: b.tracer(pods), From: clusters.InPods(0, clusters.PodNumber).String(), To: b.RemappedPod(1).String(), Port: servicePort, Live: true,
		Exec: func(ctx context.Context, c *kube.Cluster, pod string, command ...string) (io.ReadWriteCloser, error) {
			var j job
			if err := json.Unmarshal([]byte(command[len(command)-1]), &j.Question); err != nil {
				return nil, err
			}
			cmd, err := process.Command(ctx, pods[c.Context+pod].Handle, j)
			if err != nil {
				return nil, err
			}
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				return nil, err
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				return nil, err
			}
			return inside{out, in, cmd}, cmd.Start()
		},
	}
	run := func(protocol trace.Protocol, wrong func(trace.Result) error) {
		t.Helper()
		o.Protocol = protocol
		// A busy machine loses echoes. Nodes and gateways then seem unverified, and packets change their path, for a
		// moment.
		wait.Succeeds(t, joining, func() error {
			r, err := trace.Run(t.Context(), o, nil)
			if err == nil {
				err = wrong(r)
			}
			if err != nil {
				text, _ := json.MarshalIndent(r, "", " ")
				err = fmt.Errorf("%w: %s", err, text)
			}
			return err
		})
	}
	serve(t, b.Pods[1])
	for _, protocol := range []trace.Protocol{trace.TCP, trace.UDP} {
		run(protocol, func(r trace.Result) error {
			if !r.Crosses || r.Live.Answered == nil || *r.Live.Answered != (protocol == trace.TCP) {
				return fmt.Errorf("%s: crosses %v, answered %v", protocol, r.Crosses, r.Live.Answered)
			}
			seen := map[string]int{}
			for _, p := range r.Live.Places {
				if len(p.Errors) > 0 || p.Route == "" {
					return fmt.Errorf("%s %s of %s: route %q, errors %q", p.Kind, p.Name, p.Cluster, p.Route, p.Errors)
				}
				if len(p.There) > 0 {
					seen[fmt.Sprint(p.Cluster, p.Kind)]++
				}
			}
			if len(r.Live.Places) != 6 || seen["anode"] != 1 || seen["agateway"] != 1 || seen["bgateway"] != 1 || seen["bnode"] != 1 {
				return fmt.Errorf("%s was seen in %v", protocol, seen)
			}
			// At the sender's node, the kernel's route is the computed one.
			p := r.Live.Places[0]
			if !strings.HasPrefix(r.There[0].Route, p.Route) || !slices.ContainsFunc(p.There, func(s probe.Sighting) bool { return s.Out == p.Out }) {
				return fmt.Errorf("computed %s, the kernel says %s, and sent %+v", r.There[0].Route, p.Route, p.There)
			}
			return nil
		})
	}
	for _, fault := range []struct {
		at       netns.Namespace
		rule     string
		want     string
		protocol trace.Protocol
	}{
		{b.Nodes[1], "forward { type filter hook forward priority 5; tcp dport 7000 drop; }", "dropped at node b-2 of b: drop by rule 2 of chain forward of table ip fault", trace.TCP},
		{a.Nodes[0], "late { type filter hook postrouting priority 5; udp dport 7000 drop; }", "dropped at node a-1 of a: drop by rule 2 of chain late of table ip fault", trace.UDP},
		{b.Nodes[1], "answers { type filter hook forward priority 5; tcp sport 7000 drop; }", "dropped at node b-2 of b: drop by rule 2 of chain answers of table ip fault", trace.TCP},
	} {
		fault.at.Run("nft", "table ip fault { chain "+fault.rule+"; }")
		run(fault.protocol, func(r trace.Result) error {
			if r.Live.Last != fault.want || r.Crosses {
				return fmt.Errorf("%s: last %q, crosses %v", fault.rule, r.Live.Last, r.Crosses)
			}
			return nil
		})
		fault.at.Run("nft", "delete table ip fault")
	}
	for _, rule := range []string{"to 10.12.0.0/16", "iif cni0", "from 10.244.1.0/24"} {
		for _, command := range []string{"rule add prio 50 " + rule + " lookup 999", "route add blackhole 10.12.0.0/16 table 999"} {
			a.Nodes[0].IP(command)
		}
		run(trace.TCP, func(r trace.Result) error {
			const begin, end = "dropped at node a-1 of a: rule 50 ", " table 999, route 10.12.0.0/16 blackhole table 999"
			if l := r.Live.Last; !strings.HasPrefix(l, begin) || !strings.HasSuffix(l, end) || r.Crosses || r.Live.Unknown != "" {
				return fmt.Errorf("%s: last %q, crosses %v", rule, l, r.Crosses)
			}
			return nil
		})
		a.Nodes[0].IP("rule del prio 50")
		a.Nodes[0].IP("route flush table 999")
	}
	for name, ns := range pods {
		if tables := ns.Run("nft", "list", "tables"); strings.Contains(tables, "lqn-trace") {
			t.Errorf("left in %s: %s", name, tables)
		}
	}
}
