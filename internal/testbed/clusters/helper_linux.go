package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/gateway"
	"liqonet.io/liqonet/internal/helper/node"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/apiserver"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/internal/wireguard"
)

// Helper is the job of a process that is a helper, a node's or a gateway's.
type Helper struct {
	Socket  string          // of the API server
	Node    *node.Helper    // without Env
	Gateway *gateway.Helper // as Node
}

// MemoryLimit is that of the containers of helpers, bytes; Go has the same share of it as there.
const (
	MemoryLimit = 256 << 20
	memoryOfGo  = MemoryLimit * 85 / 100
)

// Run runs a helper until the parent ends the process's input: the code of the product, with another client, which a
// test may wrap.
func (h Helper) Run(ctx context.Context, wrap func(kubernetes.Interface) kubernetes.Interface) error {
	ctx = process.WithParent(ctx)
	debug.SetMemoryLimit(memoryOfGo)
	client, err := kubernetes.NewForConfig(apiserver.ClientConfig(h.Socket))
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil)) // as the product's, without its limits
	klog.SetSlogLogger(log)
	env := helper.Env{Client: wrap(client), Namespace: records.DefaultNamespace, HealthAddress: process.HealthAddress, Log: log}
	if h.Node != nil {
		h.Node.Env = env
		return h.Node.Run(ctx)
	}
	h.Gateway.Env = env
	return h.Gateway.Run(ctx)
}

// writeKeys fills the folder of a gateway's keys.
func writeKeys(t testing.TB, dir string, private wgtypes.Key) {
	t.Helper()
	require.NoError(t, errors.Join(
		os.WriteFile(filepath.Join(dir, wireguard.PrivateKey), []byte(private.String()), 0o600),
		os.WriteFile(filepath.Join(dir, wireguard.PresharedKey), []byte(PresharedKey.String()), 0o600)))
}

// Connect writes the records as the CLI does, and starts the helpers: those of nodes, then those of gateways.
func (c *Cluster) Connect(peer *Cluster) {
	c.WriteFabric()
	c.Write(records.PeeringName("peer"), c.Record(peer))
	for _, g := range c.Gateways {
		c.WriteObjects(g)
		c.Forward(g)
	}
	c.StartNodes()
	for _, g := range c.Gateways {
		c.Start(g)
	}
}

// StartNodes starts a helper on each node.
func (c *Cluster) StartNodes() {
	for i := range c.Nodes {
		c.StartNode(i)
	}
}

// StartNode starts the helper of a node.
func (c *Cluster) StartNode(i int) {
	c.NodeHelpers[i] = process.Start(c.t, c.Nodes[i], "node "+c.NodeName(i), c.NodeJob(i))
}

// NodeJob returns the job of a node's helper.
func (c *Cluster) NodeJob(i int) Helper {
	return Helper{Socket: cmp.Or(c.Sockets[i], c.Socket), Node: &node.Helper{Name: c.NodeName(i)}}
}

// Start starts the helper of a gateway.
func (c *Cluster) Start(g *Gateway) {
	g.Helper = process.Start(c.t, g.Namespace, fmt.Sprintf("%s of %s", g.Pod(), c.Name), Helper{
		Socket: cmp.Or(c.Sockets[g.Node], c.Socket),
		Gateway: &gateway.Helper{
			ID: g.ID(), Pod: g.Pod(), PodIP: g.Address(), Node: c.NodeName(g.Node), Keys: g.Keys, Epoch: g.Epoch,
		},
	})
}

// Joining is the timeout from the first record of two clusters until their paths are verified, and of other waits whose
// duration is not tested, also in a slow guest and on a busy machine.
const Joining = 3 * time.Minute

// AwaitStatus waits until no problem is found in the report of a gateway.
func (c *Cluster) AwaitStatus(g *Gateway, problem func(records.Status) error) {
	c.t.Helper()
	last := fmt.Errorf("gateway %d of cluster %s has no report", g.Number, c.Name)
	wait.Succeeds(c.t, Joining, func() error {
		require.NoError(c.t, c.t.Context().Err())
		s, err := c.StatusOf(g)
		if err != nil {
			return last // the gateway rewrites it
		}
		if err = problem(s); err != nil {
			last = fmt.Errorf("gateway %d of cluster %s: %w", g.Number, c.Name, err)
			return last
		}
		return nil
	})
}

// AwaitReports waits until no problem is found in the report of any node.
func (c *Cluster) AwaitReports(problem func(records.Node) error) {
	c.t.Helper()
	wait.Succeeds(c.t, Joining, func() error {
		reports, err := c.Reports()
		for name, n := range reports {
			if err = problem(n); err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
		}
		return err
	})
}

// AwaitProof waits until every node has received packets of full size back from a node of the peer, through every
// gateway, and every tunnel is answered.
func (c *Cluster) AwaitProof() {
	c.t.Helper()
	for _, g := range c.Gateways {
		c.AwaitStatus(g, func(s records.Status) error {
			if got := (Kinds{s.Overlay, s.Implementation, c.Kinds.Transport}); got != c.Kinds {
				return fmt.Errorf("it runs on %v, want %v", got, c.Kinds)
			}
			if len(s.Nodes) < len(c.Nodes) {
				return fmt.Errorf("it knows %d nodes", len(s.Nodes))
			}
			for _, n := range s.Nodes {
				if n.LastEcho.IsZero() || n.LastProof.IsZero() {
					return fmt.Errorf("no proof of node %s: %+v", n.Name, n)
				}
			}
			for i, tunnel := range s.AllTunnels() {
				if tunnel.LastEcho.IsZero() {
					return fmt.Errorf("no echo by tunnel %d: %+v", i+1, tunnel)
				}
			}
			return nil
		})
	}
}
