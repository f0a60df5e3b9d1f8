package underlay

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// TestMasquerade has a pod of one cluster call a node of another: from which address depends on the style.
func TestMasquerade(t *testing.T) {
	pod := netip.MustParseAddr("10.244.0.5")
	for style, want := range map[spec.Masquerade]string{
		spec.MasqueradeNft:      "172.31.1.11",
		spec.MasqueradeIptables: "172.31.1.11",
		spec.MasqueradeNone:     "172.31.2.254", // the router's, towards the other cluster
	} {
		t.Run(string(style), func(t *testing.T) {
			s := spec.Spec{Clusters: []spec.Cluster{
				{Name: "a", Nodes: 1, Style: spec.Style{Masquerade: style}},
				{Name: "b", Nodes: 1, Style: spec.Style{Masquerade: spec.MasqueradeNone}}, // the same pods
			}}.Complete()
			u, members := newStyled(t, s)
			for i, m := range members {
				require.NoError(t, m.Masquerade(s.Clusters[i], 1))
				require.NoError(t, u.RoutePods(s.Clusters[i], s.Clusters[i].Pods(1), m.Address))
			}
			hold(t, members[0], pod)
			address, from := listen(t, members[1])
			dial(t, members[0], pod, address)
			if got := <-from; got.String() != want {
				t.Errorf("the pod is seen as %s, want %s", got, want)
			}
		})
	}
}

// TestTunnel has two nodes reach each other's ranges by the tunnel alone.
func TestTunnel(t *testing.T) {
	s := spec.Spec{Clusters: []spec.Cluster{{Name: "a", Nodes: 2, Style: spec.Style{PodNetwork: spec.VXLAN}}}}.Complete()
	c := s.Clusters[0]
	_, members := newStyled(t, s)
	ends := make([]TunnelEnd, len(members))
	for i, m := range members {
		ends[i] = TunnelEnd{Node: m.Address, Address: c.TunnelAddress(i + 1)}
		require.NoError(t, m.AddTunnel(ends[i], c.PodMTU()))
	}
	for i, m := range members {
		require.NoError(t, m.RouteByTunnel(c.Pods(2-i), ends[1-i]))
	}
	pod := c.NodePodCIDR(2).Addr().Next()
	hold(t, members[1], pod)
	address, from := listen(t, members[1])
	dial(t, members[0], netip.Addr{}, netip.AddrPortFrom(pod, address.Port()))
	if got := <-from; got != ends[0].Address {
		t.Errorf("a node is seen as %s, want its tunnel address %s", got, ends[0].Address)
	}
}

// newStyled makes the underlay of a spec and a member for each of its nodes.
func newStyled(t *testing.T, s spec.Spec) (*Underlay, []Member) {
	t.Helper()
	u, err := New(s)
	require.NoError(t, err)
	t.Cleanup(func() { u.Router.Close(); u.Outside.Close() })
	var members []Member
	for _, c := range s.Clusters {
		for n := range c.Nodes {
			m, err := u.Attach(c, c.NodeName(n+1), c.NodeAddress(n+1))
			require.NoError(t, err)
			t.Cleanup(func() { m.Namespace.Close() })
			members = append(members, m)
		}
	}
	return u, members
}

// hold gives a member an address, in the place of a pod.
func hold(t *testing.T, m Member, a netip.Addr) {
	t.Helper()
	require.NoError(t, ip(m.Namespace, fmt.Sprintf("addr add %s dev lo", a)))
}

// dial connects from inside a member; the zero source is the kernel's choice.
func dial(t *testing.T, m Member, source netip.Addr, to netip.AddrPort) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var d net.Dialer
	if source.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
	}
	err := m.Namespace.Do(func() error {
		conn, err := d.DialContext(ctx, "tcp", to.String())
		if err == nil {
			conn.Close()
		}
		return err
	})
	require.NoError(t, err)
}
