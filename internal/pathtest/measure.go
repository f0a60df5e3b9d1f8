package pathtest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/templates"
)

// Each is the duration of each of the four parts of a measurement.
const Each = 3 * time.Second

// Performance is a measurement from one node to a node of the peer.
type Performance struct {
	From    End `json:"from"` // sender
	To      End `json:"to"`
	Streams int `json:"streams"` // concurrent
	// Tunnel has the figures between pods, through the tunnel; nil: none, for the reason in Failed.
	Tunnel *probe.Figures `json:"tunnel,omitempty"`
	Failed string         `json:"tunnelFailed,omitempty"`
	// Direct has the figures between the nodes, outside of the tunnel; nil: they do not reach each other, for the
	// reason in Unreached.
	Direct    *probe.Figures `json:"direct,omitempty"`
	Unreached string         `json:"directFailed,omitempty"`
	Ratios    *Ratios        `json:"ratios,omitempty"` // nil: Tunnel or Direct is missing
}

// Ratios are figures of the tunnel, each divided by the figure of the direct path.
type Ratios struct {
	Stream      float64 `json:"stream"`
	Streams     float64 `json:"streams"`
	P50         float64 `json:"p50"`
	P90         float64 `json:"p90"`
	P99         float64 `json:"p99"`
	Connections float64 `json:"connections"`
}

func ratios(p, q probe.Figures) *Ratios {
	trip := func(a, b float64) float64 { return a / max(b, 1e-9) }
	return &Ratios{
		p.Stream / max(q.Stream, 1), p.Streams / max(q.Streams, 1),
		trip(p.P50, q.P50), trip(p.P90, q.P90), trip(p.P99, q.P99), p.Connections / max(q.Connections, 1),
	}
}

// measuring returns the additional time for measurements: for each pair of nodes in both directions, on both paths,
// with the start of a pod.
func (o Options) measuring() time.Duration {
	if o.Streams == 0 {
		return 0
	}
	const pod = 10 * time.Second
	return time.Duration(o.Nodes) * 2 * 2 * (4*Each + pod)
}

// measuring returns the stages of a measurement: between pods, then between nodes. Measurements do not overlap.
func (t *test) measuring() []progress.Step {
	return []progress.Step{{Stage: progress.StageTunnel, Do: func(ctx context.Context) (string, error) {
		t.result.Checks = []Check{}
		pairs := min(len(t.sides[0].nodes), len(t.sides[1].nodes))
		for i, s := range t.sides {
			peer := t.sides[1-i]
			s.nodes, s.sampled = s.nodes[:pairs], true
			for j, name := range s.nodes {
				t.result.Performance = append(t.result.Performance, Performance{
					From:    End{Cluster: s.fabric.Name, Kind: Pod, Node: name},
					To:      End{Cluster: peer.fabric.Name, Kind: Pod, Node: peer.nodes[j]},
					Streams: t.Streams,
				})
			}
		}
		return fmt.Sprintf("%d pairs of nodes, both ways", pairs), t.measure(ctx, false)
	}}, {Stage: progress.StageDirect, Do: func(ctx context.Context) (string, error) {
		if err := t.each(func(s, _ *side) error { return s.remove(ctx) }); err != nil {
			return "", err
		}
		err := t.measure(ctx, true)
		lost := func(p Performance) bool { return p.Tunnel == nil }
		t.result.Passed = err == nil && !slices.ContainsFunc(t.result.Performance, lost)
		return "between nodes, outside of the tunnel", err
	}}}
}

// measure measures between all pairs of nodes, on one of the two paths.
func (t *test) measure(ctx context.Context, host bool) error {
	port := uint16(templates.TestPort)
	if host {
		port = templates.TestNodePort
	}
	err := t.each(func(s, _ *side) error {
		v := s.values("--meter", "--port", fmt.Sprint(port), "--token", s.token)
		v.Host = host
		return s.serve(ctx, v)
	})
	if err != nil {
		return err
	}
	for n := range t.result.Performance {
		p := &t.result.Performance[n]
		s, peer := t.sides[0], t.sides[1]
		if p.From.Cluster != s.fabric.Name {
			s, peer = peer, s
		}
		address, err := s.meter(peer, p.To.Node, host)
		if err != nil {
			return err
		}
		m, err := s.measureFrom(ctx, p.From.Node, netip.AddrPortFrom(address, port), peer.token, t.Options, host)
		if err != nil {
			return err
		}
		if host {
			p.Direct, p.Unreached = m.Figures, m.Failed
		} else {
			p.Tunnel, p.Failed = m.Figures, m.Failed
		}
		if p.Tunnel != nil && p.Direct != nil {
			p.Ratios = ratios(*p.Tunnel, *p.Direct)
		}
	}
	return nil
}

// meter returns the address of the peer's server on a node: of the pod, as this side reaches it, or of the node.
func (s *side) meter(peer *side, node string, host bool) (_ netip.Addr, err error) {
	servers := peer.servers
	if !host {
		if servers, err = s.reachable(peer); err != nil {
			return netip.Addr{}, err
		}
	}
	i := slices.IndexFunc(servers, func(p probe.Pod) bool { return p.Node == node })
	if i < 0 {
		return netip.Addr{}, fmt.Errorf("the server on node %s of cluster %q is gone", node, peer.cluster.Context)
	}
	return servers[i].Address, nil
}

// measureFrom measures the path to a server from a pod on a node or in its network, and removes the pod.
func (s *side) measureFrom(ctx context.Context, node string, meter netip.AddrPort, token string, o Options, host bool) (m probe.Measured, err error) {
	v := s.values("--meter", meter.String(), "--token", token, "--streams", fmt.Sprint(o.Streams), "--each", Each.String())
	v.Nodes = []string{node}
	pods, nodes, err := templates.PathTestProbes(v)
	if err != nil {
		return m, err
	}
	set := pods
	if host {
		set = nodes
	}
	if _, err := s.cluster.Apply(ctx, set); err != nil {
		return m, err
	}
	err = inventory.AwaitOnNodes(ctx, s.cluster, set, reportsOfProbes, v.Nodes, func(all []*corev1.Pod) ([]string, error) {
		for _, pod := range all {
			if message, ended := inventory.TerminationMessage(pod); ended && pod.Spec.NodeName == node {
				m, err = probe.DecodeMeasured(message)
				return v.Nodes, err
			}
		}
		return nil, nil
	})
	if err != nil {
		return m, err
	}
	_, err = s.cluster.Delete(ctx, set)
	return m, err
}
