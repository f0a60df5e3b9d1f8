package kernel

import (
	"errors"
	"net/netip"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
)

// addressLabel marks our addresses on the loopback device.
const addressLabel = netops.Loopback + ":lqn"

// addresses reads the IPv4 addresses of our links, and those of the loopback device that have our label.
func (s *routeSocket) addresses(links map[int]netops.Link) ([]netops.Address, error) {
	own := func(l netops.Link) bool { return l.Ours() || l.Name == netops.Loopback }
	return ofLinks(links, own, func(index int, l netops.Link) ([]netops.Address, error) {
		request := message{kind: unix.RTM_GETADDR, header: unix.IfAddrmsg{Family: unix.AF_INET, Index: uint32(index)}}
		return collect(s, request, func(data []byte) (netops.Address, bool, error) {
			var header unix.IfAddrmsg
			var address netip.Addr
			var label string
			err := unpack(data, &header, optional(unix.IFA_LOCAL, &address), optional(unix.IFA_LABEL, &label))
			a := netops.Address{Link: l.Name, Prefix: netip.PrefixFrom(address, int(header.Prefixlen))}
			return a, l.Ours() || label == addressLabel, err
		})
	})
}

func (s *routeSocket) changeAddress(op netops.Op, a netops.Address, link int) error {
	address, label := a.Prefix.Addr(), ""
	header := unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: uint8(a.Prefix.Bits()), Index: uint32(link)}
	if a.Link == netops.Loopback {
		if op == netops.Add { // replaces an existing address without our label: it would not be recognised as ours
			err := s.execute(changing(netops.Remove, unix.RTM_NEWADDR, 0, header, optional(unix.IFA_LOCAL, &address)))
			if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				return err
			}
		}
		header.Scope, label = unix.RT_SCOPE_HOST, addressLabel
	}
	return s.execute(changing(op, unix.RTM_NEWADDR, raw.Excl, header, optional(unix.IFA_LOCAL, &address), optional(unix.IFA_LABEL, &label)))
}

// fields returns the attributes of a neighbour.
func neighbourFields(n *netops.Neighbour) []field {
	return []field{optional(unix.NDA_DST, &n.IP), optional(unix.NDA_LLADDR, (*[]byte)(&n.MAC))}
}

// neighbours reads the permanent neighbours of our links.
func (s *routeSocket) neighbours(links map[int]netops.Link) ([]netops.Neighbour, error) {
	return ofLinks(links, netops.Link.Ours, func(index int, l netops.Link) ([]netops.Neighbour, error) {
		request := message{kind: unix.RTM_GETNEIGH, header: unix.NdMsg{Family: unix.AF_INET}, fields: []field{optional(unix.NDA_IFINDEX, &index)}}
		return collect(s, request, func(data []byte) (netops.Neighbour, bool, error) {
			var header unix.NdMsg
			n := netops.Neighbour{Link: l.Name}
			err := unpack(data, &header, neighbourFields(&n)...)
			return n, header.State == unix.NUD_PERMANENT, err
		})
	})
}

func (s *routeSocket) changeNeighbour(op netops.Op, n netops.Neighbour, link int) error {
	header := unix.NdMsg{Family: unix.AF_INET, Ifindex: int32(link), State: unix.NUD_PERMANENT}
	return s.execute(changing(op, unix.RTM_NEWNEIGH, raw.Replace, header, neighbourFields(&n)...))
}
