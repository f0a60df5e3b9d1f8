package underlay

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// patience is how long a connection may take on a busy machine.
const patience = 2 * time.Minute

// newMembers makes the underlay of two clusters with one node each. It needs root.
func newMembers(t *testing.T) (a, b Member) {
	t.Helper()
	_, members := newStyled(t, spec.Spec{Clusters: []spec.Cluster{{Name: "a", Nodes: 1}, {Name: "b", Nodes: 1, MTU: 1400}}}.Complete())
	return members[0], members[1]
}

// listen accepts one connection inside the member and returns the address from which it came.
func listen(t *testing.T, m Member) (netip.AddrPort, <-chan netip.Addr) {
	t.Helper()
	var l net.Listener
	err := m.Namespace.Do(func() error {
		var err error
		l, err = net.Listen("tcp4", ":0")
		return err
	})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	from := make(chan netip.Addr, 1)
	go func() {
		defer close(from)
		if conn, err := l.Accept(); err == nil {
			from <- conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
			conn.Close()
		}
	}()
	return netip.AddrPortFrom(m.Address, l.Addr().(*net.TCPAddr).AddrPort().Port()), from
}

func TestNodesOfTwoClustersReachEachOther(t *testing.T) {
	a, b := newMembers(t)
	for _, way := range [][2]Member{{a, b}, {b, a}} {
		address, from := listen(t, way[1])
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		conn, err := way[0].Namespace.Dial(ctx, address)
		require.NoError(t, err)
		conn.Close()
		if got := <-from; got != way[0].Address {
			t.Errorf("%s seen from %s as %s", way[0].Name, way[1].Name, got)
		}
	}
}

func TestPodNetworksAreNotRouted(t *testing.T) {
	a, b := newMembers(t)
	pods := netip.MustParsePrefix("10.244.7.0/24")
	require.NoError(t, b.Route([]netip.Prefix{pods}, b.Address.Next()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := a.Namespace.Dial(ctx, netip.AddrPortFrom(pods.Addr().Next(), 80))
	if !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("dial a pod of the other cluster: %v, want %v from the router", err, unix.ENETUNREACH)
	}
}

func TestAttachReplacesAnOldPort(t *testing.T) {
	s := spec.Default()
	u, _ := newStyled(t, s)
	c := s.Clusters[0]
	m, err := u.Attach(c, c.NodeName(1), c.NodeAddress(1))
	require.NoError(t, err)
	m.Namespace.Close()
}

// TestIPv6: members of a cluster with IPv6 reach each other over it, and have a route for all else.
func TestIPv6(t *testing.T) {
	s := spec.Spec{Clusters: []spec.Cluster{{Name: "a", IPFamilies: []spec.Family{spec.IPv6, spec.IPv4}}}}.Complete()
	_, members := newStyled(t, s)
	c := s.Clusters[0]
	target := spec.NodeNetwork6(members[1].Address).Addr()
	for name, to := range map[string]struct {
		address netip.Addr
		want    error // of a closed port
	}{
		"a node":           {target, unix.ECONNREFUSED},
		"a Service":        {c.APIService(), unix.ENETUNREACH}, // from the router: kube-proxy has not translated it
		"a node over IPv4": {members[1].Address, unix.ECONNREFUSED},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := members[0].Namespace.Dial(ctx, netip.AddrPortFrom(to.address, 80)); !errors.Is(err, to.want) {
			t.Errorf("dial %s: %v, want %v", name, err, to.want)
		}
	}
	route, err := execute(members[0].Namespace, "", "ip", "route", "get", c.APIService().String())
	if err != nil || !strings.Contains(route, " via ") {
		t.Errorf("route to a Service: %s, %v", route, err)
	}
}

// TestOutside: nodes reach the machine beyond the router by each of its addresses.
func TestOutside(t *testing.T) {
	u, members := newStyled(t, spec.Default())
	node := members[0]
	for _, host := range spec.OutsideHosts() {
		address, from := listen(t, Member{Address: host, Namespace: u.Outside})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		conn, err := node.Namespace.Dial(ctx, address)
		require.NoError(t, err)
		conn.Close()
		if got := <-from; got != node.Address {
			t.Errorf("%s sees the node as %s", host, got)
		}
	}
}
