package tunnel

import (
	"errors"
	"net/netip"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	vishnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// host is a network namespace that ends with the test.
type host struct {
	netns.Namespace
	t     *testing.T
	links *netlink.Handle
	// tunnel is the address of the tunnel's link, with its length; "": none.
	tunnel string
}

func newHost(t *testing.T) *host {
	t.Helper()
	ns := netns.New(t)
	links, err := netlink.NewHandleAt(vishnetns.NsHandle(ns.FD()), unix.NETLINK_ROUTE)
	require.NoError(t, err)
	t.Cleanup(links.Close)
	return &host{Namespace: ns, t: t, links: links}
}

// connect joins two hosts by a link of that name at both ends.
func connect(a, b *host, name, addrA, addrB string) {
	a.t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: name, PeerNamespace: netlink.NsFd(b.FD())}
	if err := a.links.LinkAdd(veth); err != nil {
		a.t.Fatalf("create veth %s: %v", name, err)
	}
	a.up(name, addrA)
	b.up(name, addrB)
	// A veth drops what it is given until the kernel has noticed, up to a second later, that both ends are up.
	wait.Until(a.t, "link "+name+" works", patience, func() bool {
		return a.link(name).Attrs().OperState == netlink.OperUp && b.link(name).Attrs().OperState == netlink.OperUp
	})
}

// up gives a link an address and sets it up.
func (h *host) up(name, address string) {
	h.t.Helper()
	link := h.link(name)
	if err := errors.Join(h.links.AddrAdd(link, addr(address)), h.links.LinkSetUp(link)); err != nil {
		h.t.Fatalf("set %s up with %s: %v", name, address, err)
	}
}

// readdress replaces an address of a link by another one.
func (h *host) readdress(name, old, new string) {
	h.t.Helper()
	link := h.link(name)
	if err := errors.Join(h.links.AddrDel(link, addr(old)), h.links.AddrAdd(link, addr(new))); err != nil {
		h.t.Fatalf("readdress %s: %v", name, err)
	}
}

func (h *host) link(name string) netlink.Link {
	h.t.Helper()
	link, err := h.links.LinkByName(name)
	if err != nil {
		h.t.Fatalf("link %s: %v", name, err)
	}
	return link
}

func (h *host) hasLink(name string) bool {
	_, err := h.links.LinkByName(name)
	return err == nil
}

// route sends a range through a link, by way of a router if there is one.
func (h *host) route(dst, link, via string) {
	h.t.Helper()
	n := ipNets([]netip.Prefix{netip.MustParsePrefix(dst)})[0]
	route := &netlink.Route{Dst: &n, LinkIndex: h.link(link).Attrs().Index}
	if via != "" {
		route.Gw = netip.MustParseAddr(via).AsSlice()
	}
	if err := h.links.RouteAdd(route); err != nil {
		h.t.Fatalf("route to %s: %v", dst, err)
	}
}

// forward lets the host route between its links.
func (h *host) forward() {
	h.t.Helper()
	h.Inside(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644) })
}

func addr(s string) *netlink.Addr {
	n := ipNets([]netip.Prefix{netip.MustParsePrefix(s)})[0]
	return &netlink.Addr{IPNet: &n}
}
