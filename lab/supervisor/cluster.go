package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	kube "liqonet.io/liqonet/lab/cluster"
	"liqonet.io/liqonet/lab/spec"
	"liqonet.io/liqonet/lab/underlay"
)

// Limits on what may take long on a busy machine, and between two looks.
const (
	servingTimeout = 10 * time.Minute // of an API server's start
	readyTimeout   = 10 * time.Minute // of a node's
	lookInterval   = 100 * time.Millisecond
)

// cluster is a cluster of a running lab.
type cluster struct {
	spec.Cluster
	identity *kube.Identity
	control  underlay.Member
	api      *kube.API
	proxy    net.Listener // on the host, for clients there

	mu    sync.Mutex
	nodes []*node // guarded by mu
}

// Name is the cluster's name.
func (c *cluster) Name() string { return c.Cluster.Name }

// server is the URL of the API server for clients on the host.
func (c *cluster) server() string { return "https://" + c.proxy.Addr().String() }

func (c *cluster) list() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

func (c *cluster) append(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = append(c.nodes, n)
}

// newCluster makes the cluster's keys, its control plane's namespace and the proxy to it.
func (s *Supervisor) newCluster(ctx context.Context, declared spec.Cluster) (*cluster, error) {
	identity, err := kube.NewIdentity(declared)
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: declared, identity: identity}
	if c.control, err = s.underlay.Attach(declared, declared.Name+"-cp", declared.ControlPlaneAddress()); err != nil {
		return nil, err
	}
	if c.api, err = identity.API(c.dial); err != nil {
		return nil, err
	}
	var listen net.ListenConfig
	if c.proxy, err = listen.Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	go c.serveProxy()
	return c, nil
}

// dial opens a connection to the API server from inside its namespace.
func (c *cluster) dial(ctx context.Context) (net.Conn, error) {
	return c.control.Namespace.Dial(ctx, kube.APIServer)
}

// serveProxy carries connections from the host to the API server.
func (c *cluster) serveProxy() {
	for {
		client, err := c.proxy.Accept()
		if err != nil {
			slog.Error("proxy ended", "cluster", c.Name(), "cause", err)
			return
		}
		go func() {
			defer client.Close()
			server, err := c.dial(context.Background())
			if err != nil {
				return // the client sees its connection closed, as with any server that is down
			}
			defer server.Close()
			splice(client, server)
		}()
	}
}

// splice copies both ways until both directions have ended.
func splice(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			// Whatever ends a direction, the other side learns of it by the half that is closed.
			_, _ = io.Copy(way[1], way[0])
			if half, ok := way[1].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	both.Wait()
}

// startCluster starts the control plane and the nodes, and returns when all nodes are ready.
func (s *Supervisor) startCluster(ctx context.Context, c *cluster) error {
	services, err := c.identity.ControlPlane(s.paths.ControlPlane(c.Name()), s.tools)
	if err != nil {
		return err
	}
	for _, v := range services {
		go func() {
			if err := s.spawner.Keep(ctx, v, c.control.Namespace); !errors.Is(err, context.Canceled) {
				slog.Error("service is not kept", "service", v.Name, "cause", err)
			}
		}()
	}
	for range c.Nodes {
		if _, err := s.newNode(c); err != nil {
			return err
		}
	}
	serving := func() (bool, error) { err := c.api.Serving(ctx); return err == nil, err }
	if err := await(ctx, servingTimeout, serving); err != nil {
		return fmt.Errorf("wait for the API server: %w", err)
	}
	s.journal.add("cluster %s: API server serves", c.Name())
	if c.NetworkPlugin != spec.PluginLab {
		if err := s.installPlugin(ctx, c, c.Cluster); err != nil {
			return fmt.Errorf("install %s: %w", c.NetworkPlugin, err)
		}
		s.journal.add("cluster %s: %s installed", c.Name(), c.NetworkPlugin)
	}
	var all errgroup.Group
	for _, n := range c.list() {
		all.Go(func() error { return s.admit(ctx, c, n) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	go s.balance(ctx, c)
	s.journal.add("cluster %s: all nodes Ready (%d)", c.Name(), len(c.list()))
	return nil
}

// await asks until the answer is yes. An error is remembered for the case that it never is.
func await(ctx context.Context, limit time.Duration, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		yes, err := ask()
		if yes {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}
