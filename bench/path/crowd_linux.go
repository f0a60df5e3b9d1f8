package path

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/netops"
)

// Crowd is many nodes of one cluster that exist as Leases only, with the pods in their reports: a gateway has routes to
// them, but no packets are sent or received.
type Crowd struct {
	cluster  *clusters.Cluster
	nodes    []records.Node
	free     []netip.Addr // unused pod addresses, in the order in which they are used
	routes   chan netlink.RouteUpdate
	watchErr chan error // error of the route subscription
}

// crowdSpan is the pod CIDR without the subnet of the real node.
var crowdSpan = netip.MustParsePrefix("10.244.2.0/24")

// Join adds nodes, each with pods outside its podCIDRs, to the cluster that was joined first. Its gateway has routes to
// them when Join returns, after took.
func (b *Bed) Join(ctx context.Context, nodes, pods int) (c *Crowd, took time.Duration, err error) {
	c = &Crowd{cluster: b.joined[0], routes: make(chan netlink.RouteUpdate, 1<<16), watchErr: make(chan error, 1)}
	if err := c.watch(b); err != nil {
		return nil, 0, err
	}
	for a := crowdSpan.Addr(); clusters.PodCIDR.Contains(a); a = a.Next() {
		c.free = append(c.free, a)
	}
	if len(c.free) <= nodes*pods {
		return nil, 0, fmt.Errorf("%d nodes of %d pods: the pod CIDR has %d addresses", nodes, pods, len(c.free))
	}
	begin := time.Now()
	for i := range nodes {
		n := records.Node{
			Version: records.SchemaVersion, Name: fmt.Sprintf("crowd-%d", i), MTU: clusters.LinkMTU,
			Number:         256*(1+i/250) + 1 + i%250,
			OverlaySources: map[records.GatewayID]netip.Addr{{Peering: "peer", Number: 1}: netip.AddrFrom4([4]byte{172, 20, byte(i / 250), byte(1 + i%250)})},
			Kernel:         records.Capabilities{Release: "6.18", WireGuard: true, Geneve: true, VXLAN: true},
			Peerings:       []string{"peer"},
		}
		n.Pods, c.free = slices.Clone(c.free[:pods]), c.free[pods:]
		if err := c.write(ctx, n, true); err != nil {
			return nil, 0, err
		}
		c.nodes = append(c.nodes, n)
	}
	want := map[netip.Addr]bool{}
	for _, n := range c.nodes {
		want[records.NodeAddress(clusters.InternalCIDR, n.Number)] = true
		for _, p := range n.Pods {
			want[p] = true
		}
	}
	err = c.await(ctx, want)
	return c, time.Since(begin), err
}

// joinTimeout is how long a gateway may take to add routes to a crowd.
const joinTimeout = 10 * time.Minute

// await waits for a route to each address.
func (c *Crowd) await(ctx context.Context, missing map[netip.Addr]bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, joinTimeout, errors.New("the gateway has not all routes"))
	defer cancel()
	for len(missing) > 0 {
		select {
		case u := <-c.routes:
			delete(missing, target(u))
		case err := <-c.watchErr:
			return fmt.Errorf("%d routes are missing: follow the gateway's routes: %w", len(missing), err)
		case <-ctx.Done():
			return fmt.Errorf("%d routes are missing: %w", len(missing), context.Cause(ctx))
		}
	}
	return nil
}

// watch subscribes to the routes of the gateway.
func (c *Crowd) watch(b *Bed) error {
	ns, err := netns.GetFromPath(c.cluster.Gateways[0].Path())
	if err != nil {
		return err
	}
	done := make(chan struct{})
	b.t.Cleanup(func() { close(done); assert.NoError(b.t, ns.Close()) })
	return netlink.RouteSubscribeWithOptions(c.routes, done, netlink.RouteSubscribeOptions{
		Namespace: &ns, ReceiveBufferSize: 64 << 20, ReceiveBufferForceSize: true, // a subscription that overflows ends
		ErrorCallback: func(err error) {
			select {
			case c.watchErr <- err:
			default:
			}
		},
	})
}

// target returns the pod or node of a new route; no address for other changes.
func target(u netlink.RouteUpdate) netip.Addr {
	if u.Type != newRoute || u.Table != netops.FromPeer || u.Dst == nil {
		return netip.Addr{}
	}
	a, _ := netip.AddrFromSlice(u.Dst.IP.To4())
	return a
}

const newRoute = 24 // RTM_NEWROUTE

// write writes the Lease of a node like its helper.
func (c *Crowd) write(ctx context.Context, n records.Node, first bool) error {
	text, err := records.Encode(n)
	if err != nil {
		return err
	}
	id := records.Identity{Component: records.ComponentNode}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: records.NodeLeaseName(n.Number), Namespace: records.DefaultNamespace, Labels: id.Labels(),
			Annotations: map[string]string{records.AnnotationNode: text},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.Name},
	}
	leases := c.cluster.API.CoordinationV1().Leases(records.DefaultNamespace)
	if first {
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}

// Replace replaces pods of random nodes, one per pause, for the duration d. It returns the time of each new pod from
// its node's report to the gateway's route, and the share of one processor that the gateway used.
func (c *Crowd) Replace(ctx context.Context, pause, d time.Duration) (took []time.Duration, processor float64, err error) {
	before, err := process.Time(c.cluster.Gateways[0].Helper.PID)
	if err != nil {
		return nil, 0, err
	}
	begin, sent := time.Now(), map[netip.Addr]time.Time{}
	tick, end := time.NewTicker(pause), time.After(d)
	defer tick.Stop()
	late := time.NewTimer(joinTimeout)
	for tick := tick.C; tick != nil || len(sent) > 0; {
		select {
		case <-tick:
			pod, err := c.replaceOne(ctx, sent)
			if err != nil {
				return nil, 0, fmt.Errorf("pod %s: %w", pod, err)
			}
		case u := <-c.routes:
			if at, mine := sent[target(u)]; mine {
				took = append(took, time.Since(at))
				delete(sent, target(u))
			}
		case <-end:
			tick = nil
		case <-late.C:
			return took, 0, fmt.Errorf("%d pods have no route after %v", len(sent), joinTimeout)
		case <-ctx.Done():
			return took, 0, context.Cause(ctx)
		}
	}
	after, err := process.Time(c.cluster.Gateways[0].Helper.PID)
	return took, float64(after-before) / float64(time.Since(begin)), err
}

// replaceOne replaces the oldest pod of a random node.
func (c *Crowd) replaceOne(ctx context.Context, sent map[netip.Addr]time.Time) (netip.Addr, error) {
	n := &c.nodes[rand.N(len(c.nodes))] //nolint:gosec // any node is suitable
	removed, pod := n.Pods[0], c.free[0]
	n.Pods, c.free = append(slices.Clone(n.Pods[1:]), pod), append(c.free[1:], removed)
	sent[pod] = time.Now()
	return pod, c.write(ctx, *n, false)
}

// Memory returns the resident memory of the gateway, in bytes.
func (c *Crowd) Memory() (int, error) { return load.Resident(c.cluster.Gateways[0].Helper.PID) }
