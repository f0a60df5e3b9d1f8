package pathtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/observe/read"
	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/translate"
	"liqonet.io/liqonet/templates"
)

// side is one cluster of a test.
type side struct {
	cluster    *kube.Cluster
	seen       *observe.Snapshot
	run        string // ID of the test
	fabric     records.Fabric
	peering    records.Peering
	translator translate.Translator
	internal   map[string]netip.Addr // addresses of nodes in the overlay, by node
	pods       templates.Pods
	image      string   // of the test's pods
	sampled    bool     // nodes are a sample
	nodes      []string // nodes that take part
	notReady   []string // nodes that are not Ready
	servers    []probe.Pod
	token      string // required by the servers of this side
	service    *corev1.Service
	reports    []report // of the probes
}

// reach reads the cluster, and checks the preconditions of a test in it. Without an image, that of the installation is
// used.
func (s *side) reach(ctx context.Context, image string) error {
	s.seen = read.Take(ctx, s.cluster, observe.Elsewhere, observe.Records, observe.Leases, observe.Nodes)
	if err := cmp.Or(s.seen.Errors[observe.Server], s.seen.Errors[observe.Elsewhere]); err != nil {
		return err
	}
	if err := inventory.CheckPermissions(ctx, s.cluster, templates.Administer); err != nil {
		return err
	}
	if err := cmp.Or(s.seen.Errors[observe.Records], s.seen.Errors[observe.Leases], s.seen.Errors[observe.Nodes]); err != nil {
		return err
	}
	if err := s.seen.Damaged[records.FabricName]; err != nil {
		return inventory.Damaged(s.cluster, records.FabricName, err)
	}
	if s.seen.Fabric == nil {
		return inventory.NotInstalled(ctx, s.cluster)
	}
	s.fabric = *s.seen.Fabric
	var err error
	if s.pods, err = inventory.PodSettings(ctx, s.cluster); err != nil || image != "" {
		s.image = image
		return err
	}
	if s.image, err = inventory.InstalledImage(ctx, s.cluster); err != nil || s.image != "" {
		return err
	}
	return inventory.NotInstalled(ctx, s.cluster)
}

// choose finds the peering with another cluster and the nodes that take part: a sample of that size, or all if 0.
func (s *side) choose(peer records.Fabric, sample int) error {
	name := s.seen.PeeringWith(peer)
	switch err := s.seen.Damaged[records.PeeringName(name)]; {
	case err != nil:
		return inventory.Damaged(s.cluster, records.PeeringName(name), err)
	case s.seen.Peerings[name] == nil:
		return &inventory.NoPeeringError{Context: s.cluster.Context, Name: peer.Name, Known: s.seen.Names()}
	}
	s.peering = *s.seen.Peerings[name]
	var err error
	if s.translator, err = s.seen.Translator(name); err != nil {
		return err
	}
	reports, err := inventory.Reports(s.seen.Leases)
	if err != nil {
		return err
	}
	s.token, s.internal = rand.Text(), make(map[string]netip.Addr)
	for _, n := range reports {
		s.internal[n.Name] = records.NodeAddress(s.fabric.InternalCIDR(), n.Number)
	}
	return s.chooseNodes(sample)
}

func (s *side) chooseNodes(sample int) error {
	s.nodes, s.notReady = s.seen.NodeNames()
	if len(s.nodes) == 0 {
		return fmt.Errorf("cluster %q has no node that is Ready", s.cluster.Context)
	}
	if s.sampled = sample > 0 && sample < len(s.nodes); s.sampled {
		s.nodes = s.nodes[:sample]
	}
	return nil
}

// values returns the template values of the side's workloads.
func (s *side) values(args ...string) templates.PathTestValues {
	v := templates.PathTestValues{Namespace: s.cluster.Namespace, Image: s.image, Pods: s.pods, Args: args, Run: s.run, Without: s.notReady}
	if s.sampled {
		v.Nodes = s.nodes
	}
	return v
}

// serve runs servers, and waits until they run on all nodes.
func (s *side) serve(ctx context.Context, v templates.PathTestValues) error {
	set, err := templates.PathTestServer(v)
	if err != nil {
		return err
	}
	if _, err := s.cluster.Apply(ctx, set); err != nil {
		return err
	}
	return inventory.AwaitOnNodes(ctx, s.cluster, set, "servers", s.nodes, func(pods []*corev1.Pod) (done []string, err error) {
		s.servers = nil
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
				continue
			}
			address, err := inventory.PodAddress(pod)
			if err != nil {
				return nil, err
			}
			s.servers = append(s.servers, probe.Pod{Node: pod.Spec.NodeName, Address: address})
			done = append(done, pod.Spec.NodeName)
		}
		slices.SortStableFunc(s.servers, func(a, b probe.Pod) int { return strings.Compare(a.Node, b.Node) })
		return done, nil
	})
}

// reachable returns the servers of the peer with the addresses by which this side reaches them.
func (s *side) reachable(peer *side) ([]probe.Pod, error) {
	servers := slices.Clone(peer.servers)
	for i := range servers {
		a, err := s.translator.Import(servers[i].Address)
		if err != nil {
			return nil, fmt.Errorf("pod on node %s of cluster %q: %w", servers[i].Node, peer.cluster.Context, err)
		}
		servers[i].Address = a.Translated
	}
	return servers, nil
}

// publish creates a Service whose endpoints are the servers of the peer.
func (s *side) publish(ctx context.Context, peer *side) error {
	service, err := templates.PathTestService(s.cluster.Namespace, s.run)
	if err != nil {
		return err
	}
	servers, err := s.reachable(peer)
	if err != nil {
		return err
	}
	if _, err := s.cluster.Apply(ctx, service); err != nil {
		return err
	}
	if s.service, err = kube.Find[*corev1.Service](ctx, s.cluster, service.Name); err != nil {
		return err
	}
	if s.service == nil || len(s.service.Spec.Ports) == 0 {
		return fmt.Errorf("read Service %s/%s of cluster %q: it is gone", service.Namespace, service.Name, s.cluster.Context)
	}
	var addresses []netip.Addr
	for _, pod := range servers[:min(len(servers), probe.MaxTargets)] {
		addresses = append(addresses, pod.Address)
	}
	_, err = s.cluster.Apply(ctx, templates.PathTestEndpoints(s.service, addresses))
	return err
}

// reportsOfProbes is the name of the awaited objects in messages.
const reportsOfProbes = "reports of probes"

// ask runs probes on the nodes, and reads their reports, sorted by node.
func (s *side) ask(ctx context.Context, peer *side, hold time.Duration) error {
	servers, err := s.reachable(peer)
	if err != nil {
		return err
	}
	port := s.service.Spec.Ports[0]
	args := []string{
		"--mtu", fmt.Sprint(s.peering.MTU), "--hold", hold.String(), "--token", peer.token,
		"--service", fmt.Sprintf("%s:%d", s.service.Spec.ClusterIP, port.Port), "--node-port", fmt.Sprint(port.NodePort),
	}
	for _, pod := range servers {
		args = append(args, "--pod", pod.Node+"="+pod.Address.String())
	}
	pods, nodes, err := templates.PathTestProbes(s.values(args...))
	if err != nil {
		return err
	}
	if _, err := s.cluster.Apply(ctx, pods, nodes); err != nil {
		return err
	}
	for _, set := range []*appsv1.DaemonSet{pods, nodes} {
		var found []report
		err := inventory.AwaitOnNodes(ctx, s.cluster, set, reportsOfProbes, s.nodes, func(all []*corev1.Pod) (done []string, err error) {
			if found, err = s.read(all); err != nil {
				return nil, err
			}
			for _, r := range found {
				done = append(done, r.from.Node)
			}
			return done, nil
		})
		if err != nil {
			return err
		}
		s.reports = append(s.reports, found...)
	}
	return nil
}

// read reads the reports of the probes that have ended.
func (s *side) read(pods []*corev1.Pod) (reports []report, err error) {
	for _, pod := range pods {
		message, ended := inventory.TerminationMessage(pod)
		if !ended {
			continue
		}
		r := report{from: End{Cluster: s.fabric.Name, Kind: Pod, Node: pod.Spec.NodeName}}
		if r.results, err = probe.Decode(message); err != nil {
			return nil, fmt.Errorf("pod %s of cluster %q: %w", pod.Name, s.cluster.Context, err)
		}
		if pod.Spec.HostNetwork {
			r.from.Kind, r.address = Node, s.internal[pod.Spec.NodeName]
		} else if r.address, err = inventory.PodAddress(pod); err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	slices.SortStableFunc(reports, func(a, b report) int { return strings.Compare(a.from.Node, b.from.Node) })
	return reports, nil
}

// sets are the names of the DaemonSets of tests.
var sets = []string{records.ComponentTestPod, records.ComponentTestNode, records.ComponentTestServer}

// clean removes all objects of tests, of this one and of others.
func (s *side) clean(ctx context.Context) error {
	var all []kube.Object
	for _, name := range sets {
		all = append(all, &appsv1.DaemonSet{ObjectMeta: inventory.Meta(s.cluster.Namespace, name)})
	}
	place := inventory.Meta(s.cluster.Namespace, records.ComponentTestServer)
	_, err := s.cluster.Delete(ctx, append(all, &corev1.Service{ObjectMeta: place}, &discoveryv1.EndpointSlice{ObjectMeta: place})...)
	return err
}

// remove removes the objects of this test.
func (s *side) remove(ctx context.Context) error {
	var group errgroup.Group
	for _, name := range sets {
		group.Go(func() error { return inventory.DeleteOwn[*appsv1.DaemonSet](ctx, s.cluster, name, s.run) })
	}
	group.Go(func() error {
		place := inventory.Meta(s.cluster.Namespace, records.ComponentTestServer)
		return inventory.DeleteOwn[*corev1.Service](ctx, s.cluster, place.Name, s.run, &discoveryv1.EndpointSlice{ObjectMeta: place})
	})
	return group.Wait()
}
