// Package faults measures the effects of faults on a peering, on real clusters, while pods exchange packets and open
// connections. Package flows runs in the pods.
package faults

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/faults/flows"
	"liqonet.io/liqonet/lab/spec"
)

//go:embed probe.yaml
var probe string

// The clusters: a is the client of the tunnel, b its server.
const (
	client = "a"
	server = "b"
)

// nodes is the number of nodes of each cluster: two for gateways, and one without faults, whose pods measure.
const nodes = 3

// images are the helpers' images. Both have the same binary: an upgrade goes from one to the other.
var images = [2]string{"liqonet.invalid/liqonet:one", "liqonet.invalid/liqonet:two"}

// Bed is two connected clusters with pods that measure.
type Bed struct {
	Lab      *lab.Lab
	Liqoctl  string // path of the program
	image    int    // of images, which runs
	peers    map[string]string
	gateways int      // of each cluster
	gone     []string // nodes that were replaced; objects of their pods remain for a minute
	// Nodes of the server.
	Nodes int
	// Away is how long an API server does not answer, and Lasts how long faults last that do not end alone.
	Away, Lasts time.Duration
}

// Spec declares the clusters of a bed.
func Spec() spec.Spec {
	return spec.Spec{Clusters: []spec.Cluster{{Name: client, Nodes: nodes}, {Name: server, Nodes: nodes}}}.Complete()
}

// NewBed connects the clusters of a running lab that Spec declares, with a number of gateways in each.
func NewBed(ctx context.Context, l *lab.Lab, liqoctl string, gateways int) (*Bed, error) {
	b, err := Probes(ctx, l, liqoctl)
	if err != nil {
		return nil, err
	}
	b.gateways = gateways
	for _, image := range images {
		if err := b.load(ctx, image); err != nil {
			return nil, err
		}
	}
	return b, b.connect(ctx)
}

// Probes starts the pods that measure, in clusters a and b of a running lab. Its caller connects the clusters, and
// measures faults of its own.
func Probes(ctx context.Context, l *lab.Lab, liqoctl string) (*Bed, error) {
	b := &Bed{Lab: l, Liqoctl: liqoctl, peers: map[string]string{client: server, server: client}, Nodes: nodes}
	b.Away, b.Lasts = 10*time.Minute, time.Minute
	for cluster := range b.peers {
		apply, err := l.KubectlCommand(ctx, cluster, "apply", "-f", "-")
		if err != nil {
			return nil, err
		}
		apply.Stdin = strings.NewReader(probe)
		if out, err := apply.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%v: %w: %s", apply.Args, err, out)
		}
	}
	for cluster := range b.peers {
		if err := b.kubectl(ctx, cluster, "rollout", "status", "daemonset/probe", "--timeout=10m"); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// connect connects the clusters with the current image, or updates the peering.
func (b *Bed) connect(ctx context.Context, args ...string) error {
	number := strconv.Itoa(b.gateways)
	_, err := b.liqoctl(ctx, append([]string{"network", "connect", "--context", client, "--remote-context", server,
		"--gateways", number, "--remote-gateways", number,
		"--gw-server-service-type", "NodePort", "--image", images[b.image], "--timeout", "10m"}, args...)...)
	return err
}

// load copies an image of liqoctl to the nodes.
func (b *Bed) load(ctx context.Context, name string) error {
	dir, err := os.MkdirTemp("", "liqonet-faults-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "image.tar")
	if _, err := b.liqoctl(ctx, "image", "save", "--tag", name, "-o", file); err != nil {
		return err
	}
	archive, err := os.Open(file)
	if err != nil {
		return err
	}
	defer archive.Close()
	return b.Lab.Load(ctx, archive)
}

// command is liqoctl with the kubeconfig of the lab, not started.
func (b *Bed) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.Liqoctl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.Lab.Kubeconfig())
	return cmd
}

func (b *Bed) liqoctl(ctx context.Context, args ...string) ([]byte, error) {
	cmd := b.command(ctx, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("liqoctl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}

func (b *Bed) kubectl(ctx context.Context, cluster string, args ...string) error {
	_, err := b.Lab.Kubectl(ctx, cluster, args...)
	return err
}

// pod is the part of a Pod that a bed needs.
type pod struct {
	Metadata struct{ Name, UID, DeletionTimestamp string }
	Spec     struct{ NodeName string }
	Status   struct {
		PodIP string
		Phase string
	}
}

func (b *Bed) pods(ctx context.Context, cluster, namespace, labels string) ([]pod, error) {
	out, err := b.Lab.Kubectl(ctx, cluster, "-n", namespace, "get", "pods", "-l", labels, "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []pod }
	err = json.Unmarshal(out, &list)
	return list.Items, err
}

// gateway is the first of a cluster's gateways that runs.
func (b *Bed) gateway(ctx context.Context, cluster string) (pod, error) {
	all, err := b.pods(ctx, cluster, "liqonet", "liqonet.io/component=gateway")
	if err != nil {
		return pod{}, err
	}
	i := slices.IndexFunc(all, func(p pod) bool { return p.Status.Phase == "Running" })
	if i < 0 {
		return pod{}, fmt.Errorf("cluster %s: no gateway runs", cluster)
	}
	return all[i], nil
}

// prober is a pod that measures, on a node that no fault hits.
type prober struct {
	node, ip string
	targets  []string // as seen from it
}

// probers returns the pods of cluster a that are not on spared nodes; they measure the paths to those of b, which
// answer.
func (b *Bed) probers(ctx context.Context, spare ...string) ([]prober, error) {
	spare = append(spare, b.gone...)
	usable := func(cluster string) ([]pod, error) {
		all, err := b.pods(ctx, cluster, "default", "app=probe")
		all = slices.DeleteFunc(all, func(p pod) bool { return slices.Contains(spare, p.Spec.NodeName) })
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("cluster %s: no pod to measure with", cluster)
		}
		return all, err
	}
	from, err := usable(client)
	if err != nil {
		return nil, err
	}
	to, err := usable(server)
	if err != nil {
		return nil, err
	}
	var all []prober
	for i, p := range from {
		target, err := b.liqoctl(ctx, "ipam", "translate", "--context", client, "--from", server, to[i%len(to)].Status.PodIP)
		if err != nil {
			return nil, err
		}
		all = append(all, prober{node: p.Spec.NodeName, ip: p.Status.PodIP, targets: []string{strings.TrimSpace(string(target))}})
	}
	return all, nil
}

// begin starts a measurement in the pod.
func (p prober) begin(ctx context.Context, l *lab.Lab) error {
	_, err := p.request(ctx, l, "/begin?"+url.Values{"to": p.targets}.Encode())
	return err
}

// end ends the measurement.
func (p prober) end(ctx context.Context, l *lab.Lab) ([]flows.Result, error) {
	out, err := p.request(ctx, l, "/end")
	if err != nil {
		return nil, err
	}
	var results []flows.Result
	err = json.Unmarshal(out, &results)
	return results, err
}

// request sends a request to the pod from its own node, which needs neither API server nor peering.
func (p prober) request(ctx context.Context, l *lab.Lab, path string) ([]byte, error) {
	return l.NodeExec(ctx, p.node, "workload", "get", "http://"+p.ip+":8090"+path)
}

// watch reads the state of the peering as a user sees it: `network status --watch` of one cluster.
func (b *Bed) watch(ctx context.Context, cluster string, tell func(state string, at time.Time)) error {
	cmd := b.command(ctx, "network", "status", "--context", cluster, "--watch", "-o", "json")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	answers := json.NewDecoder(out)
	for {
		var answer struct{ Peerings []struct{ State string } }
		err := answers.Decode(&answer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			_ = cmd.Process.Kill()
			return errors.Join(err, cmd.Wait())
		}
		for _, p := range answer.Peerings {
			tell(p.State, time.Now())
		}
	}
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("watch status of cluster %s: %w", cluster, err)
	}
	return nil
}
