package lab

import (
	"context"
	"fmt"

	"liqonet.io/liqonet/lab/netns"
	"liqonet.io/liqonet/lab/underlay"
)

// BlockUDP has the router drop all UDP between the node networks of two clusters, also that to load balancers, until
// AllowUDP. Other packets pass.
func (l *Lab) BlockUDP(ctx context.Context, one, other string) error {
	_, err := l.NodeExec(ctx, "router", "nft", underlay.BlockUDP(one, other))
	return err
}

// AllowUDP ends BlockUDP.
func (l *Lab) AllowUDP(ctx context.Context, one, other string) error {
	_, err := l.NodeExec(ctx, "router", "nft", underlay.AllowUDP(one, other))
	return err
}

// Namespace opens the network namespace of a node, of "router", "outside" or a control plane, such as "a-cp". The node
// has another one after it was killed.
func (l *Lab) Namespace(ctx context.Context, place string) (*netns.Namespace, error) {
	s, err := l.Status(ctx)
	if err != nil {
		return nil, err
	}
	p, ok := s.Places[place]
	if !ok {
		return nil, fmt.Errorf("no node %q runs", place)
	}
	if p.Net != "" {
		return netns.Open(p.Net)
	}
	return netns.Open(fmt.Sprintf("/proc/%d/ns/net", p.PID))
}
