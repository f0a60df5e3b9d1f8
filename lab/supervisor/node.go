package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"liqonet.io/liqonet/lab/cgroup"
	kube "liqonet.io/liqonet/lab/cluster"
	"liqonet.io/liqonet/lab/control"
	nodes "liqonet.io/liqonet/lab/node"
	"liqonet.io/liqonet/lab/spec"
	"liqonet.io/liqonet/lab/underlay"
)

// node is a node of a running lab.
type node struct {
	kube.Node
	group cgroup.Group

	mu      sync.Mutex
	member  underlay.Member // of its current life
	init    *exec.Cmd       // its PID 1
	started time.Time
	ended   chan struct{} // closed when init has ended
}

// running returns the node's PID 1 as the host sees it.
func (n *node) running() (pid int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.ended:
		return 0, false
	default:
		return n.init.Process.Pid, true
	}
}

// newNode adds the next node to a cluster and starts it. Its kubelet waits until the node is admitted.
func (s *Supervisor) newNode(c *cluster) (*node, error) {
	n := &node{Node: kube.Node{Identity: c.identity, Number: len(c.list()) + 1}}
	group, err := s.group.Child("node-" + n.Name())
	if err != nil {
		return nil, err
	}
	n.group = group
	if err := s.startNode(c, n); err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name(), err)
	}
	c.append(n)
	return n, nil
}

// startNode gives the node a network and starts its processes.
func (s *Supervisor) startNode(c *cluster, n *node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := s.connect(c, n); err != nil {
		return err
	}
	images, err := s.images()
	if err != nil {
		return err
	}
	disk := s.paths.Node(n.Name())
	services, err := n.Configure(disk, s.runc, images)
	if err != nil {
		return err
	}
	n.started = time.Now()
	n.init, err = nodes.Start(s.spawner, nodes.Config{
		Name: n.Name(), Disk: disk, Tools: s.tools, Images: s.paths.Images(), Group: n.group, Services: services,
	}, n.member.Namespace)
	if err != nil {
		return err
	}
	init, ended := n.init, make(chan struct{})
	n.ended = ended
	go func() {
		slog.Info("node ended", "node", n.Name(), "cause", init.Wait())
		close(ended)
	}()
	return nil
}

// admit creates the Node object, lets kubelet go and returns when the node is ready.
func (s *Supervisor) admit(ctx context.Context, c *cluster, n *node) error {
	if err := c.api.CreateNode(ctx, n.Node); err != nil {
		return err
	}
	if err := n.Admit(s.paths.Node(n.Name())); err != nil {
		return err
	}
	return s.awaitReady(ctx, c, n)
}

// awaitReady returns when the node has reported, since it was started, that it is ready, and translates
// Services.
func (s *Supervisor) awaitReady(ctx context.Context, c *cluster, n *node) error {
	err := await(ctx, readyTimeout, func() (bool, error) {
		if _, ok := n.running(); !ok {
			return false, fmt.Errorf("its processes ended: see %s", filepath.Join(s.paths.Node(n.Name()), "init.log"))
		}
		ready, err := c.api.ReadyNodes(ctx)
		if err != nil {
			return false, err
		}
		if ready[n.Name()].Before(n.started.Truncate(time.Second)) { // reports bear whole seconds
			return false, nil
		}
		if c.KubeProxy == spec.ProxyNone {
			return true, nil
		}
		err = kube.ProxyHealthy(ctx, func(ctx context.Context) (net.Conn, error) {
			return n.member.Namespace.Dial(ctx, kube.KubeProxyHealth)
		})
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait until node %s is Ready: %w", n.Name(), err)
	}
	return nil
}

// addNode adds a node to a running cluster and returns when it is ready.
func (s *Supervisor) addNode(ctx context.Context, c *cluster) (control.Node, error) {
	if len(c.list()) == c.MaxNodes() {
		return control.Node{}, fmt.Errorf("add node to cluster %s: its ranges have room for %d", c.Name(), c.MaxNodes())
	}
	n, err := s.newNode(c)
	if err != nil {
		return control.Node{}, err
	}
	if err := s.admit(ctx, c, n); err != nil {
		return control.Node{}, err
	}
	return n.describe(control.Ready), nil
}

// killNode ends the node as a power failure would: its disk is what remains.
func (s *Supervisor) killNode(ctx context.Context, n *node) error {
	if _, ok := n.running(); !ok {
		return fmt.Errorf("node %s: does not run", n.Name())
	}
	if err := n.init.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill node %s: %w", n.Name(), err)
	}
	<-n.ended
	// Groups of pods that are gone would keep the kubelet of the node's next life waiting.
	if err := n.group.Empty(ctx); err != nil {
		return err
	}
	return n.member.Namespace.Close()
}

// reviveNode starts a node that was killed and returns when it is ready.
func (s *Supervisor) reviveNode(ctx context.Context, c *cluster, n *node) error {
	if _, ok := n.running(); ok {
		return fmt.Errorf("node %s: runs already", n.Name())
	}
	if err := s.startNode(c, n); err != nil {
		return err
	}
	return s.awaitReady(ctx, c, n)
}

func (n *node) describe(state control.State) control.Node {
	return control.Node{
		Name: n.Name(), Address: n.Address().String(), PodCIDR: n.PodCIDR().String(), State: state,
	}
}
