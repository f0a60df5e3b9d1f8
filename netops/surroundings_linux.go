package netops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Surroundings are the IPv4 addresses that a namespace uses besides ours. They can repeat, and are in no order.
type Surroundings struct {
	Routes    []netip.Prefix // destinations of routes in all tables, but for default routes and those of our links
	Addresses []netip.Addr   // of its own, also those that no link's range tells
	// Connections are the ends of TCP connections in which both sides have sent: of the namespace's own sockets, and of
	// those that its connection tracking knows, before and after translation.
	Connections []netip.Addr
}

// staleConnection is how long a peer of a socket may be silent. An end that is gone leaves an idle socket for hours.
const staleConnection = 10 * time.Minute

// Surroundings reads what the namespace uses. It takes as long as to read all routes and tracked connections: some
// 0.2 s for a hundred thousand of them.
func (k *Kernel) Surroundings() (Surroundings, error) {
	var s Surroundings
	if err := k.foreignRoutes(&s); err != nil {
		return s, fmt.Errorf("read routes: %w", err)
	}
	if err := k.ownSockets(&s); err != nil {
		return s, fmt.Errorf("read sockets: %w", err)
	}
	if err := k.trackedConnections(&s); err != nil {
		return s, fmt.Errorf("read tracked connections: %w", err)
	}
	return s, nil
}

func (k *Kernel) foreignRoutes(s *Surroundings) error {
	links, err := k.route.links()
	if err != nil {
		return err
	}
	request := message{kind: unix.RTM_GETROUTE, header: unix.RtMsg{Family: unix.AF_INET}}
	_, err = collect(k.route, request, func(data []byte) (none struct{}, of bool, err error) {
		r, header, err := decodeRoute(data, links)
		switch {
		case err != nil || header.Protocol == Protocol || strings.HasPrefix(r.Link, Prefix) || r.Dst.Bits() == 0:
		case header.Type == unix.RTN_LOCAL && r.Dst.IsSingleIP():
			s.Addresses = append(s.Addresses, r.Dst.Addr())
		case header.Type != unix.RTN_LOCAL && header.Type != unix.RTN_BROADCAST && header.Type != unix.RTN_MULTICAST:
			s.Routes = append(s.Routes, r.Dst)
		}
		return none, false, err
	})
	return err
}

// ownSockets finds the far ends of the namespace's own connections.
func (k *Kernel) ownSockets(s *Surroundings) error {
	handle, err := k.open(unix.NETLINK_INET_DIAG)
	if err != nil {
		return err
	}
	defer handle.Close()
	sockets, err := handle.SocketDiagTCPInfo(unix.AF_INET)
	switch {
	case err == nil, errors.Is(err, netlink.ErrDumpInterrupted): // one more or less is no matter
	case errors.Is(err, unix.ENOENT): // a kernel without tcp_diag
		return nil
	default:
		return err
	}
	for _, socket := range sockets {
		if socket.InetDiagMsg == nil || socket.InetDiagMsg.State != netlink.TCP_ESTABLISHED || socket.TCPInfo == nil ||
			time.Duration(socket.TCPInfo.Last_ack_recv)*time.Millisecond > staleConnection {
			continue
		}
		s.connection(socket.InetDiagMsg.ID.Destination)
	}
	return nil
}

func (s *Surroundings) connection(ip net.IP) {
	if a, ok := netip.AddrFromSlice(ip.To4()); ok {
		s.Connections = append(s.Connections, a)
	}
}

// Of linux/netfilter/nf_conntrack_common.h: packets have been seen in both directions, more than once.
const connectionAssured = 1 << 2

// trackedConnections finds the ends of connections that are tracked. The kernel's answer is read piece by piece: a busy
// node has hundreds of thousands.
func (k *Kernel) trackedConnections(s *Surroundings) error {
	socket, err := nl.GetNetlinkSocketAt(netns.NsHandle(k.netns), netns.None(), unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer socket.Close()
	request := nl.NewNetlinkRequest(int(netlink.ConntrackTable)<<8|nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP)
	request.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_NETFILTER: {Socket: socket}}
	request.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_INET, Version: nl.NFNETLINK_V0})
	seen := make(map[netip.Addr]bool)
	var damaged error
	err = request.ExecuteIter(unix.NETLINK_NETFILTER, 0, func(data []byte) bool {
		ends, err := assuredEnds(data)
		for _, a := range ends {
			seen[a] = true
		}
		damaged = err
		return err == nil
	})
	for a := range seen {
		s.Connections = append(s.Connections, a)
	}
	if errors.Is(err, netlink.ErrDumpInterrupted) { // one more or less is no matter
		err = nil
	}
	return errors.Join(damaged, err)
}

// assuredEnds are the four addresses of an assured TCP connection, of its two directions; none for any other.
func assuredEnds(data []byte) (ends []netip.Addr, err error) {
	var header [nl.SizeofNfgenmsg]byte
	var status []byte
	var there, back direction
	err = unpack(data, &header, optional(nl.CTA_STATUS, &status),
		optional(nl.CTA_TUPLE_ORIG, there.fields()), optional(nl.CTA_TUPLE_REPLY, back.fields()))
	assured := len(status) == 4 && binary.BigEndian.Uint32(status)&connectionAssured != 0
	if err != nil || !assured || there.protocol != unix.IPPROTO_TCP {
		return nil, err
	}
	return []netip.Addr{there.from, there.to, back.from, back.to}, nil
}

// direction is one of the two of a connection.
type direction struct {
	from, to netip.Addr
	protocol uint8
}

func (t *direction) fields() []field {
	return []field{
		optional(nl.CTA_TUPLE_IP, []field{optional(nl.CTA_IP_V4_SRC, &t.from), optional(nl.CTA_IP_V4_DST, &t.to)}),
		optional(nl.CTA_TUPLE_PROTO, []field{optional(nl.CTA_PROTO_NUM, &t.protocol)}),
	}
}
