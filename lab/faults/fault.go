package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Fault is a failure, or a planned change, of connected clusters.
type Fault struct {
	Name string // as -only and the table have it
	What string // for the table
	Aim  Aim
	// Spared are the nodes whose pods do not measure, because the fault ends them.
	Spared func(ctx context.Context, b *Bed) ([]string, error)
	// Settings are flags of connect that the peering has during the fault, Reset those that undo them.
	Settings, Reset []string
	// EachNode repeats the fault for each node of the server, each time from a healthy state.
	EachNode bool
	// Begin causes the fault. It returns a function that undoes it, or nil if the fault ends by itself.
	Begin func(ctx context.Context, b *Bed) (undo func(context.Context) error, err error)
}

// Aim bounds the effects of a fault. The zero value has no bounds, except that no stream breaks.
type Aim struct {
	Lossless      bool          // no packet is lost
	Median, Worst time.Duration // without packets
}

// of reports whether samples of a fault reach the aim.
func (a Aim) of(samples []Sample) string {
	without := make([]time.Duration, len(samples))
	lost, broken := 0, 0
	for i, s := range samples {
		without[i], lost, broken = s.Without, lost+s.Lost, broken+s.Broken
	}
	slices.Sort(without)
	var text string
	reached := broken == 0
	switch {
	case a.Lossless:
		text, reached = "0 lost", reached && lost == 0
	case a.Worst > 0:
		text = fmt.Sprintf("%s s", figure(a.Worst.Seconds()))
		if a.Median != a.Worst {
			text = fmt.Sprintf("%s s, worst %s s", figure(a.Median.Seconds()), figure(a.Worst.Seconds()))
		}
		reached = reached && without[len(without)/2] <= a.Median && without[len(without)-1] <= a.Worst
	default:
		text = "no stream broken"
	}
	if !reached {
		text += ": **not reached**"
	}
	return text
}

// The aims.
var (
	lossless = Aim{Lossless: true}
	half     = Aim{Median: 500 * time.Millisecond, Worst: 500 * time.Millisecond}
	seconds  = Aim{Median: time.Second, Worst: 2 * time.Second}
	detected = Aim{Median: 4 * time.Second, Worst: 4 * time.Second}
)

// All are the faults, in the order of the table.
func All() []Fault {
	return []Fault{
		{
			Name: "none", What: "none: what the machine alone costs", Aim: lossless,
			Begin: func(ctx context.Context, _ *Bed) (func(context.Context) error, error) { return nil, pause(ctx, calm) },
		},
		{
			Name: "pod-deleted", What: "gateway's pod deleted", Aim: lossless,
			Begin: onGateway(client, func(ctx context.Context, b *Bed, p pod) (func(context.Context) error, error) {
				return nil, b.kubectl(ctx, client, "-n", "liqonet", "delete", "pod", p.Metadata.Name, "--wait=false")
			}),
		},
		{
			Name: "pod-forced", What: "gateway's pod deleted by force", Aim: half,
			Begin: onGateway(client, func(ctx context.Context, b *Bed, p pod) (func(context.Context) error, error) {
				return nil, b.kubectl(ctx, client, "-n", "liqonet", "delete", "pod", p.Metadata.Name, "--grace-period=0", "--force")
			}),
		},
		{
			Name: "killed", What: "gateway's process ended by SIGKILL", Aim: half,
			Begin: onGateway(client, func(_ context.Context, _ *Bed, p pod) (func(context.Context) error, error) {
				return nil, signal(p, syscall.SIGKILL)
			}),
		},
		{
			Name: "stopped", What: "gateway's process stopped for a minute",
			Begin: onGateway(client, func(ctx context.Context, b *Bed, p pod) (func(context.Context) error, error) {
				if err := signal(p, syscall.SIGSTOP); err != nil {
					return nil, err
				}
				if err := pause(ctx, b.Lasts); err != nil {
					return nil, err
				}
				_ = signal(p, syscall.SIGCONT) // kubelet may have ended it
				return nil, nil
			}),
		},
		{Name: "power-client", What: "client's gateway's node without power", Aim: seconds, Spared: gatewayNode(client), Begin: onGateway(client, power)},
		{Name: "power-server", What: "server's gateway's node without power", Aim: seconds, Spared: gatewayNode(server), Begin: onGateway(server, power)},
		{Name: "drain-client", What: "client's gateway's node drained", Aim: lossless, Begin: onGateway(client, drain(client))},
		{Name: "drain-server", What: "server's gateway's node drained", Aim: lossless, Begin: onGateway(server, drain(server))},
		{Name: "uplink", What: "uplink of the client's gateway's node cut for a minute", Spared: gatewayNode(client), Begin: onGateway(client, uplink)},
		{
			Name: "udp-blocked", What: "UDP blocked for a minute, with WebSocket", Aim: detected,
			Settings: []string{"--gw-server-websocket"}, Reset: []string{"--gw-server-websocket=false"}, Begin: blockUDP,
		},
		{Name: "api", What: "API server away for ten minutes, one gateway killed meanwhile", Begin: onGateway(client, apiServer)},
		{Name: "kubelet", What: "kubelet of the client's gateway's node restarted", Aim: lossless, Begin: onGateway(client, restart("kubelet"))},
		{Name: "containerd", What: "containerd of the client's gateway's node restarted", Aim: lossless, Begin: onGateway(client, restart("containerd"))},
		{Name: "replaced", What: "every node of the server drained and replaced, one by one", Spared: oldest, EachNode: true, Begin: replace},
		{Name: "upgrade", What: "helpers of both clusters upgraded", Aim: lossless, Begin: upgrade},
		{Name: "scale", What: "both clusters get one gateway more, and lose it again", Aim: lossless, Begin: scale},
		{Name: "keys", What: "keys of all gateways rotated", Aim: lossless, Begin: rotate},
	}
}

// calm is the duration without a fault.
const calm = 10 * time.Second

// onGateway is a fault of a cluster's gateway.
func onGateway(
	cluster string, begin func(ctx context.Context, b *Bed, p pod) (func(context.Context) error, error),
) func(context.Context, *Bed) (func(context.Context) error, error) {
	return func(ctx context.Context, b *Bed) (func(context.Context) error, error) {
		p, err := b.gateway(ctx, cluster)
		if err != nil {
			return nil, err
		}
		return begin(ctx, b, p)
	}
}

func gatewayNode(cluster string) func(context.Context, *Bed) ([]string, error) {
	return func(ctx context.Context, b *Bed) ([]string, error) {
		p, err := b.gateway(ctx, cluster)
		return []string{p.Spec.NodeName}, err
	}
}

// power kills a node as a power failure would, and starts it again in the end.
func power(ctx context.Context, b *Bed, p pod) (func(context.Context) error, error) {
	node := p.Spec.NodeName
	return func(ctx context.Context) error { return b.Lab.StartNode(ctx, node) }, b.Lab.KillNode(ctx, node)
}

func drain(cluster string) func(ctx context.Context, b *Bed, p pod) (func(context.Context) error, error) {
	return func(ctx context.Context, b *Bed, p pod) (func(context.Context) error, error) {
		node := p.Spec.NodeName
		err := b.kubectl(ctx, cluster, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5m")
		return func(ctx context.Context) error { return b.kubectl(ctx, cluster, "uncordon", node) }, err
	}
}

// oldest is the node of the server that replace removes.
func oldest(ctx context.Context, b *Bed) ([]string, error) {
	name, err := b.Lab.Kubectl(ctx, server, "get", "nodes", "--sort-by=.metadata.creationTimestamp", "-o", "jsonpath={.items[0].metadata.name}")
	return []string{string(name)}, err
}

// replace drains the server's oldest node, kills it, deletes its Node object and adds a node with another name, address
// and disk. The peering observes only the nodes: its record is written anew only after the last one, for the faults
// that follow.
func replace(ctx context.Context, b *Bed) (func(context.Context) error, error) {
	names, err := oldest(ctx, b)
	if err != nil {
		return nil, err
	}
	node := names[0]
	if _, err := drain(server)(ctx, b, pod{Spec: struct{ NodeName string }{node}}); err != nil {
		return nil, err
	}
	b.gone = append(b.gone, node)
	if err := errors.Join(b.Lab.KillNode(ctx, node), b.kubectl(ctx, server, "delete", "node", node)); err != nil {
		return nil, err
	}
	if _, err := b.Lab.AddNode(ctx, server); err != nil || len(b.gone)%b.Nodes != 0 {
		return nil, err
	}
	return func(ctx context.Context) error { return b.connect(ctx, "--update") }, nil
}

// cutOff is a table that drops all packets on the network card, before all other ingress and after all other egress.
const cutOff = `add table inet cutoff
add chain inet cutoff in { type filter hook prerouting priority -1000; }
add rule inet cutoff in iifname "eth0" drop
add chain inet cutoff out { type filter hook postrouting priority 1000; }
add rule inet cutoff out oifname "eth0" drop
`

// cut isolates a machine of the lab for a time, and calls a function meanwhile.
func cut(ctx context.Context, b *Bed, machine string, during time.Duration, meanwhile func() error) error {
	if _, err := b.Lab.NodeExec(ctx, machine, "nft", cutOff); err != nil {
		return err
	}
	err := meanwhile()
	if err == nil {
		err = pause(ctx, during)
	}
	_, undone := b.Lab.NodeExec(context.WithoutCancel(ctx), machine, "nft", "delete table inet cutoff")
	if err == nil {
		err = undone
	}
	return err
}

func uplink(ctx context.Context, b *Bed, p pod) (func(context.Context) error, error) {
	return nil, cut(ctx, b, p.Spec.NodeName, b.Lasts, func() error { return nil })
}

// blockUDP lasts until the tunnels have returned to UDP.
func blockUDP(ctx context.Context, b *Bed) (func(context.Context) error, error) {
	err := b.Lab.BlockUDP(ctx, client, server)
	if err == nil {
		err = pause(ctx, b.Lasts)
	}
	if err := errors.Join(err, b.Lab.AllowUDP(context.WithoutCancel(ctx), client, server)); err != nil {
		return nil, err
	}
	return nil, b.AwaitTransport(ctx, UDP)
}

func apiServer(ctx context.Context, b *Bed, p pod) (func(context.Context) error, error) {
	return nil, cut(ctx, b, client+"-cp", b.Away, func() error { return signal(p, syscall.SIGKILL) })
}

// restarted kills the node's oldest process with an option, and waits for another one. No process of the script
// matches.
const restarted = `old=$(pgrep -o -f "$0") && kill "$old" && until new=$(pgrep -o -f "$0") && [ "$new" != "$old" ]; do sleep 0.1; done`

// restart kills a program of a gateway's node, which the node starts again after a second.
func restart(program string) func(ctx context.Context, b *Bed, p pod) (func(context.Context) error, error) {
	command := fmt.Sprintf("[%s]%s --config=", program[:1], program[1:])
	return func(ctx context.Context, b *Bed, p pod) (func(context.Context) error, error) {
		if _, err := b.Lab.NodeExec(ctx, p.Spec.NodeName, "timeout", "60", "sh", "-c", restarted, command); err != nil {
			return nil, err
		}
		return nil, pause(ctx, calm)
	}
}

func upgrade(ctx context.Context, b *Bed) (func(context.Context) error, error) {
	b.image = 1 - b.image
	return nil, b.connect(ctx, "--update")
}

func scale(ctx context.Context, b *Bed) (func(context.Context) error, error) {
	b.gateways++
	more := b.connect(ctx, "--update")
	b.gateways--
	return nil, errors.Join(more, b.connect(ctx, "--update"))
}

// pause lets time pass.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// signal sends a signal to the helper of a pod.
func signal(p pod, s syscall.Signal) error {
	pids, err := helpers(p)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil {
			return fmt.Errorf("send %s to pod %s: %w", s, p.Metadata.Name, err)
		}
	}
	return nil
}

// helpers returns the processes of a pod's helper, at least one. The lab's machine has the pods' processes in its PID
// namespace.
func helpers(p pod) ([]int, error) {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, file := range groups {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), p.Metadata.UID) {
			continue // of another pod, or it has ended
		}
		folder := filepath.Dir(file)
		command, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || !strings.Contains(string(command), "\x00helper\x00") {
			continue // the sandbox's own
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	if len(pids) == 0 {
		return nil, fmt.Errorf("pod %s: no process of a helper", p.Metadata.Name)
	}
	return pids, nil
}

// rotate replaces the keys of all gateways.
func rotate(ctx context.Context, b *Bed) (func(context.Context) error, error) {
	_, err := b.liqoctl(ctx, "network", "rotate-keys", "--context", client, "--remote-context", server)
	return nil, err
}
