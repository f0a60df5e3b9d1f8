// Package lab starts real Kubernetes clusters in network namespaces of this machine: etcd, API server,
// controller manager, scheduler, kubelet, kube-proxy, containerd and runc, without Docker, a registry or a
// hypervisor. It needs root.
//
//	l, err := lab.Start(ctx, lab.Options{Spec: spec.Default()})
//	defer l.Down(context.WithoutCancel(ctx))
//	out, err := l.Kubectl(ctx, "a", "get", "nodes")
package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"liqonet.io/liqonet/lab/build"
	"liqonet.io/liqonet/lab/cluster"
	"liqonet.io/liqonet/lab/control"
	"liqonet.io/liqonet/lab/progress"
	"liqonet.io/liqonet/lab/spec"
	"liqonet.io/liqonet/lab/state"
	"liqonet.io/liqonet/lab/supervisor"
)

// DefaultName is the lab of commands without a name.
const DefaultName = "demo"

// WorkloadImage is an image that every node has: program "workload", see lab/cmd/workload.
const WorkloadImage = cluster.WorkloadImage

// Errors about labs that do not run.
var (
	ErrNotRunning = errors.New("the lab does not run")
	ErrOtherSpec  = errors.New("the lab runs with another spec")
)

// Options of a lab.
type Options struct {
	Name string    // "" is DefaultName
	Spec spec.Spec // the zero value is spec.Default
	Log  io.Writer // progress; nil: none
}

// Lab is a running lab. It runs in processes of its own, and longer than this one.
type Lab struct {
	paths  state.Paths
	client *control.Client
	status control.Status // as the lab was when it was opened
}

// Start builds what the lab needs, starts it and returns when all nodes are Ready. A running
// lab of that name and spec is returned unchanged; the remains of a killed lab are removed first.
func Start(ctx context.Context, o Options) (*Lab, error) {
	paths, report, err := o.complete()
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("start lab %s: namespaces and mounts need root", o.Name)
	}
	if err := build.EnsureHost(ctx, report, o.Spec.Plugins()...); err != nil {
		return nil, err
	}
	tools, err := build.Ensure(ctx, report, o.Spec.Plugins()...)
	if err != nil {
		return nil, err
	}
	declared, err := o.Spec.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode spec of lab %s: %w", o.Name, err)
	}
	pid, err := paths.Holder()
	if err != nil {
		return nil, err
	}
	if pid == 0 {
		if err := paths.Remove(ctx); err != nil {
			return nil, err
		}
		if err := launch(ctx, paths, tools, declared); err != nil {
			return nil, fmt.Errorf("start lab %s: %w", o.Name, err)
		}
	} else if runs, err := os.ReadFile(paths.Spec()); err != nil {
		return nil, err
	} else if !bytes.Equal(runs, declared) {
		return nil, fmt.Errorf("start lab %s: %w", o.Name, ErrOtherSpec)
	}
	client := control.NewClient(paths.Socket())
	if err := client.Events(ctx, func(e control.Event) { report.Line("%5.1fs %s", e.At.Seconds(), e.Text) }); err != nil {
		return nil, fmt.Errorf("start lab %s: %w; its logs are in %s", o.Name, err, paths.Data())
	}
	return Open(ctx, o.Name)
}

// complete sets defaults and validates.
func (o *Options) complete() (state.Paths, *progress.Reporter, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	o.Spec = o.Spec.Complete()
	err := errors.Join(spec.ValidateName(o.Name), o.Spec.Validate())
	return state.Paths{Name: o.Name}, progress.New(o.Log), err
}

// launch starts the supervisor and returns when it answers.
func launch(ctx context.Context, paths state.Paths, tools string, declared []byte) error {
	if err := paths.Create(); err != nil {
		return err
	}
	if err := os.WriteFile(paths.Spec(), declared, 0o644); err != nil {
		return err
	}
	log, err := os.OpenFile(paths.SupervisorLog(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	// The supervisor outlives this program.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(tools, "lab"), supervisor.Command, paths.Name)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(paths.Socket()); err == nil {
			return nil
		}
		select {
		case err := <-ended:
			said, _ := os.ReadFile(paths.SupervisorLog())
			return fmt.Errorf("supervisor ended: %w: %s", err, bytes.TrimSpace(said))
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Open returns the running lab of that name, "" for DefaultName.
func Open(ctx context.Context, name string) (*Lab, error) {
	if name == "" {
		name = DefaultName
	}
	if err := spec.ValidateName(name); err != nil {
		return nil, err
	}
	paths := state.Paths{Name: name}
	pid, err := paths.Holder()
	if err != nil {
		return nil, err
	}
	if pid == 0 {
		return nil, fmt.Errorf("lab %s: %w", name, ErrNotRunning)
	}
	l := &Lab{paths: paths, client: control.NewClient(paths.Socket())}
	if l.status, err = l.client.Status(ctx); err != nil {
		return nil, fmt.Errorf("lab %s: %w", name, err)
	}
	return l, nil
}

// Remove stops a lab in any state, and removes everything of it from this machine.
func Remove(ctx context.Context, name string) error {
	if err := spec.ValidateName(name); err != nil {
		return err
	}
	return state.Paths{Name: name}.Remove(ctx)
}

// Down stops the lab and returns when everything of it is removed.
func (l *Lab) Down(ctx context.Context) error { return l.paths.Remove(ctx) }

// Status returns the current state of the lab.
func (l *Lab) Status(ctx context.Context) (control.Status, error) { return l.client.Status(ctx) }

// Kubeconfig is the path of a file with one context a cluster, of the cluster's name, for clients on this
// machine. Its user may do everything.
func (l *Lab) Kubeconfig() string { return l.status.Kubeconfig }

// AuditLog is the path of the file in which the API server of a cluster logs requests of users and service accounts:
// see package audit. It is removed with the lab.
func (l *Lab) AuditLog(name string) string { return cluster.AuditLog(l.paths.ControlPlane(name)) }

// KubectlCommand returns the command kubectl for a cluster, not started.
func (l *Lab) KubectlCommand(ctx context.Context, cluster string, args ...string) (*exec.Cmd, error) {
	known := slices.ContainsFunc(l.status.Clusters, func(c control.Cluster) bool { return c.Name == cluster })
	if !known {
		return nil, fmt.Errorf("lab %s has no cluster %q", l.paths.Name, cluster)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(l.status.Tools, "kubectl"), append([]string{"--context=" + cluster}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(), "KUBECACHEDIR="+filepath.Join(l.status.Logs, "kubectl"))
	return cmd, nil
}

// Kubectl runs kubectl for a cluster and returns its output.
func (l *Lab) Kubectl(ctx context.Context, cluster string, args ...string) ([]byte, error) {
	cmd, err := l.KubectlCommand(ctx, cluster, args...)
	if err != nil {
		return nil, err
	}
	return output(cmd)
}

// Load imports the images of a docker-style archive into every node, also into those that are added later.
func (l *Lab) Load(ctx context.Context, archive io.Reader) error { return l.client.Load(ctx, archive) }

// AddNode adds a node to a cluster and returns when it is Ready.
func (l *Lab) AddNode(ctx context.Context, cluster string) (control.Node, error) {
	return l.client.AddNode(ctx, cluster)
}

// UpgradePlugin replaces an earlier release of a cluster's network plugin by the current one, from its manifest or
// chart. It does not wait for the pods.
func (l *Lab) UpgradePlugin(ctx context.Context, cluster string) error {
	return l.client.UpgradePlugin(ctx, cluster)
}

// KillNode ends a node as a power failure would. Its disk remains.
func (l *Lab) KillNode(ctx context.Context, node string) error { return l.client.KillNode(ctx, node) }

// StartNode starts a node that was killed and returns when it is Ready.
func (l *Lab) StartNode(ctx context.Context, node string) error { return l.client.StartNode(ctx, node) }

// NodeCommand returns a command, not started, that runs a program in a node, in "router", on the machine "outside"
// or, for the control plane of cluster a, in "a-cp". The programs of the lab, such as workload, are in a node's PATH.
func (l *Lab) NodeCommand(ctx context.Context, node string, argv ...string) *exec.Cmd {
	args := append([]string{"--name", l.paths.Name, "exec", node, "--"}, argv...)
	return exec.CommandContext(ctx, filepath.Join(l.status.Tools, "lab"), args...)
}

// NodeExec runs a program as NodeCommand does and returns its output.
func (l *Lab) NodeExec(ctx context.Context, node string, argv ...string) ([]byte, error) {
	return output(l.NodeCommand(ctx, node, argv...))
}

// output returns the output of the command; stderr becomes part of the error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%v: %w: %s", cmd.Args, err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}
