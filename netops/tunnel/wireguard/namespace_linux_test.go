package wireguard

import (
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// host is a network namespace that ends with the test.
type host struct {
	netns.Namespace
	t *testing.T
	// tunnel is the address of the tunnel's link, with its length; "": none.
	tunnel string
}

func newHost(t *testing.T) *host {
	t.Helper()
	return &host{Namespace: netns.New(t), t: t}
}

// connect joins two hosts by a link of that name at both ends.
func connect(a, b *host, name, addrA, addrB string) {
	a.t.Helper()
	a.Link(name, b.Namespace, name, 0)
	a.IP("addr add " + addrA + " dev " + name)
	b.IP("addr add " + addrB + " dev " + name)
	// A veth drops what it is given until the kernel has noticed, up to a second later, that both ends are up.
	wait.Until(a.t, "link "+name+" works", patience, func() bool {
		const works = "state UP"
		return strings.Contains(a.IP("link show dev "+name), works) && strings.Contains(b.IP("link show dev "+name), works)
	})
}

func (h *host) hasLink(name string) bool {
	_, err := h.Handle.Run(h.t.Context(), "", "ip", "link", "show", "dev", name)
	return err == nil
}
