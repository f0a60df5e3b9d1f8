// Package supervisor is the process that a lab consists of: it owns the namespaces, starts every program and
// keeps it running, and serves requests. The lab ends with it, however it ends.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/lab/build"
	"liqonet.io/liqonet/lab/cgroup"
	"liqonet.io/liqonet/lab/dns"
	"liqonet.io/liqonet/lab/pki"
	"liqonet.io/liqonet/lab/process"
	"liqonet.io/liqonet/lab/spec"
	"liqonet.io/liqonet/lab/state"
	"liqonet.io/liqonet/lab/underlay"
)

// Command is the command of the lab binary that runs a supervisor; it takes the lab's name.
const Command = "supervise"

// Supervisor is a running lab.
type Supervisor struct {
	paths    state.Paths
	spec     spec.Spec
	tools    string // folder of the lab's programs
	runc     string
	group    cgroup.Group
	spawner  *process.Spawner
	underlay *underlay.Underlay
	clusters []*cluster
	journal  *journal
	names    dns.Server // of load balancers

	// change is held while nodes or images are added.
	change sync.Mutex
}

// Run runs the lab of that name until ctx is done. What it is to consist of is in its spec file.
func Run(ctx context.Context, name string) error {
	s := &Supervisor{paths: state.Paths{Name: name}, spawner: process.NewSpawner(), journal: newJournal(time.Now())}
	lock, err := s.paths.Hold()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := s.prepare(); err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "unix", s.paths.Socket())
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           s.handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	go s.start(ctx)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return server.Close()
	}
}

// prepare makes what everything else relies on.
func (s *Supervisor) prepare() error {
	all, err := cgroup.Create(s.paths.Group())
	if err != nil {
		return err
	}
	s.group = all
	own, err := all.Child("supervisor")
	if err != nil {
		return err
	}
	if err := own.Join(); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	s.tools = filepath.Dir(program)
	if s.runc, err = build.FindProgram("runc"); err != nil {
		return err
	}
	s.spec, err = spec.Read(s.paths.Spec())
	return err
}

// start brings the lab up and records how it went.
func (s *Supervisor) start(ctx context.Context) {
	err := s.bringUp(ctx)
	if err != nil {
		slog.Error("lab did not start", "cause", err)
	}
	s.journal.end(err)
}

func (s *Supervisor) bringUp(ctx context.Context) error {
	if err := state.RaiseLimits(); err != nil {
		return err
	}
	loadModules(ctx)
	var err error
	if s.underlay, err = underlay.New(s.spec); err != nil {
		return err
	}
	if err := s.serveNames(ctx); err != nil {
		return err
	}
	for _, declared := range s.spec.Clusters {
		c, err := s.newCluster(ctx, declared)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", declared.Name, err)
		}
		s.clusters = append(s.clusters, c)
	}
	if err := s.writeKubeconfig(); err != nil {
		return err
	}
	s.journal.add("networks up")
	var all errgroup.Group
	for _, c := range s.clusters {
		all.Go(func() error {
			if err := s.startCluster(ctx, c); err != nil {
				return fmt.Errorf("cluster %s: %w", c.Name(), err)
			}
			return nil
		})
	}
	return all.Wait()
}

// serveNames makes the router the name server of the nodes.
func (s *Supervisor) serveNames(ctx context.Context) error {
	return s.underlay.Router.Do(func() error {
		var listen net.ListenConfig
		conn, err := listen.ListenPacket(ctx, "udp4", fmt.Sprintf(":%d", dns.Port))
		if err != nil {
			return err
		}
		go func() { slog.Error("name server ended", "cause", s.names.Serve(conn)) }()
		return nil
	})
}

// modules are kernel modules that hosts may have and not have loaded, with a path that exists when they are.
var modules = map[string]string{
	"br_netfilter": "/proc/sys/net/bridge",
	"overlay":      "/sys/module/overlay",
}

// loadModules loads what is not there yet. What is built into the kernel or cannot be had shows when it is used.
func loadModules(ctx context.Context) {
	for module, path := range modules {
		if _, err := os.Stat(path); err == nil {
			continue
		}
		modprobe, err := build.FindProgram("modprobe")
		if err != nil {
			continue
		}
		if out, err := exec.CommandContext(ctx, modprobe, module).CombinedOutput(); err != nil {
			slog.Warn("kernel module not loaded", "module", module, "cause", err, "output", string(out))
		}
	}
}

// writeKubeconfig writes the file with a context for every cluster, for clients on the host.
func (s *Supervisor) writeKubeconfig() error {
	var accesses []pki.Access
	for _, c := range s.clusters {
		accesses = append(accesses, pki.Access{
			Context: c.Name(), Server: c.server(), Authority: c.identity.Authority(), User: c.identity.Admin,
		})
	}
	text, err := pki.Kubeconfig(accesses...)
	if err != nil {
		return err
	}
	return os.WriteFile(s.paths.Kubeconfig(), text, 0o600)
}

// node finds a node and its cluster by the node's name.
func (s *Supervisor) node(name string) (*cluster, *node, error) {
	for _, c := range s.clusters {
		for _, n := range c.list() {
			if n.Name() == name {
				return c, n, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("node %s: not in this lab", name)
}

// cluster finds a cluster by its name.
func (s *Supervisor) cluster(name string) (*cluster, error) {
	for _, c := range s.clusters {
		if c.Name() == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("cluster %s: not in this lab", name)
}

// errStarting is the answer to requests for changes before the lab is up.
var errStarting = errors.New("the lab is not up yet")
