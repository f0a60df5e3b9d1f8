// Package path builds, in network namespaces, the ways between two clusters that a measurement compares: the tunnel
// alone, a baseline from pod to pod, a model of Liqo's path, and the path that liqonet's helpers make.
//
// Each cluster is one node with a pod and the gateway's pod; a wire joins the nodes. Both clusters have the same
// pod CIDR, so that addresses are translated in both directions.
package path

import (
	"context"
	"fmt"
	"testing"
	"time"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
)

// Bed holds what paths consist of: namespaces and processes, which end with it, or with this process.
type Bed struct {
	t     testing.TB
	close func() error
	kinds clusters.Kinds
	// started are the processes that were started since the last path was complete.
	started []int
	// all are the clusters: a wire joins each two.
	all []*clusters.Cluster
	// joined are the clusters with helpers.
	joined []*clusters.Cluster
	// Delay is that of the wires between nodes which are made from now on, in each direction.
	Delay time.Duration
}

// NewBed returns an empty bed. What is made in it ends with the context at the latest.
func NewBed(ctx context.Context, k clusters.Kinds) *Bed {
	p := &program{ctx: ctx}
	return &Bed{t: p, close: p.close, kinds: k}
}

// Close ends everything in the bed.
func (b *Bed) Close() error { return b.close() }

// way builds a path, and returns it once a packet has come back on it, with all processes that were started for it.
func (b *Bed) way(build func() load.Way) (w load.Way, err error) {
	err = try(func() { w = build() })
	if err != nil {
		return w, err
	}
	w.Processes, b.started = b.started, nil
	// With a deadline, -c1 ends with the first answer.
	_, err = w.From.Run(b.t.Context(), "", "ping", "-q", "-c1", "-w20", "-i0.2", w.Address.String())
	return w, err
}

// fromPodToPod is the path from the client's pod to the server's.
func fromPodToPod(client, server *clusters.Cluster) load.Way {
	return load.Way{From: client.Pods[0].Handle, To: server.Pods[0].Handle, Address: server.RemappedPod(0)}
}

const (
	overlayMTU  = clusters.LinkMTU - 50 // IPv4 20 + UDP 8 + overlay 8 + Ethernet 14
	overlayPort = 6091
	overlayID   = 7
)

// Addresses of the pod and of the bridge of each cluster's node.
var (
	podAddress    = clusters.InPods(0, clusters.PodNumber)
	bridgeAddress = clusters.InPods(0, 0).Next()
)

// MaxGateways is how many gateways a cluster of a bed can have.
const MaxGateways = 2

// clusters makes both ends of a path, as a simple CNI leaves them, with some gateways each.
func (b *Bed) clusters(gateways int) (client, server *clusters.Cluster) {
	server = clusters.New(b.t, 1, 1, "10.12.0.0/16", netns.Namespace{}, b.kinds)
	client = clusters.New(b.t, 2, 1, "10.11.0.0/16", netns.Namespace{}, b.kinds)
	b.wire(client.Nodes[0], server.Nodes[0])
	for _, c := range []*clusters.Cluster{server, client} {
		for range gateways - 1 {
			c.AddGateway()
		}
		c.Nodes[0].IP("link set eth0 up", fmt.Sprintf("addr add %s/16 dev eth0", c.NodeAddress(0)), "route add default dev eth0")
		b.all = append(b.all, c)
	}
	return client, server
}

// pair is clusters with a gateway each, to whose server the NodePorts lead.
func (b *Bed) pair() (client, server *clusters.Cluster) {
	client, server = b.clusters(1)
	server.Forward(server.Gateways[0])
	return client, server
}

// Liqonet is the path from pod to pod as liqonet's helpers make and keep it, with so many gateways in each cluster:
// each in a process of its own, which follows the records that connect would write.
func (b *Bed) Liqonet(gateways int) (load.Way, error) { return b.liqonet(gateways, b.kinds) }

// WebSocket is Liqonet with a gateway in each cluster, and WebSocket instead of UDP.
func (b *Bed) WebSocket() (load.Way, error) {
	k := b.kinds
	k.Transport = records.WebSocket
	return b.liqonet(1, k)
}

// Unencrypted is Liqonet with a gateway in each cluster, and tunnels without encryption.
func (b *Bed) Unencrypted() (load.Way, error) {
	k := b.kinds
	k.WireGuard = records.Unencrypted
	return b.liqonet(1, k)
}

func (b *Bed) liqonet(gateways int, k clusters.Kinds) (load.Way, error) {
	return b.way(func() load.Way {
		client, server := b.clusters(gateways)
		client.Kinds, server.Kinds = k, k
		server.Connect(client)
		client.Connect(server)
		for _, c := range []*clusters.Cluster{server, client} {
			b.keep(c.NodeHelpers[0])
			for _, g := range c.Gateways {
				b.keep(g.Helper)
			}
			c.AwaitProof()
			b.joined = append(b.joined, c)
		}
		return fromPodToPod(client, server)
	})
}

// keep has a process count as one of the path's until the bed ends. Its errors are part of the bed's.
func (b *Bed) keep(p *process.Process) {
	b.started = append(b.started, p.PID)
	b.t.Cleanup(func() {
		if err := p.Close(); b.t.Context().Err() == nil {
			assert.NoError(b.t, err)
		}
	})
}
