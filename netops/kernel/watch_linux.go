package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops"
)

// watchBuffer is the size in bytes of the buffer for notifications: an nftables transaction of kube-proxy has thousands
// of them. An overflow counts as a change.
const watchBuffer = 4 << 20

// Watch reports changes in the kernel until its context ends.
type Watch struct {
	kernel  *Kernel
	self    uint32 // port of the socket by which Kernel changes routes
	changed chan<- struct{}
	ours    map[int32]bool // indexes of our links
	wait    func() error
}

// Wait returns when the watch has ended: nil after the end of the context, else an error.
func (w *Watch) Wait() error { return w.wait() }

// Watch starts to report changes of our objects, by other programs or by Apply, to a channel of size one: receivers
// observe the whole state again. It misses no change after it has returned. Routes that Apply changes do not count:
// gateways have tens of thousands.
//
// Foreign routes to the ranges of the last call of Detours, and all IPsec policies, count as ours.
//
// The kernel does not report routes that are deleted with their link (but it reports the link), and settings of foreign
// devices.
func (k *Kernel) Watch(ctx context.Context, changed chan<- struct{}) (*Watch, error) {
	w := &Watch{kernel: k, self: k.route.conn.PID(), changed: changed, ours: make(map[int32]bool)}
	sources := []struct {
		what   string
		family int
		groups []uint32
		ours   func(raw.Message) bool
	}{
		{"routes", unix.NETLINK_ROUTE, routeGroups, func(m raw.Message) bool { return w.isOurRoute(m) && !w.isOwnChange(m) }},
		{"firewall", unix.NETLINK_NETFILTER, []uint32{unix.NFNLGRP_NFTABLES}, isOurFirewall},
		{"IPsec policies", unix.NETLINK_XFRM, []uint32{policyGroup}, func(raw.Message) bool { return true }},
	}
	conns := make([]*raw.Conn, len(sources))
	closeAll := func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}
	for i, s := range sources {
		var err error
		if conns[i], err = k.subscribe(s.family, s.groups...); err != nil && !errors.Is(err, unix.EPROTONOSUPPORT) {
			closeAll()
			return nil, fmt.Errorf("watch %s: %w", s.what, err)
		}
	}
	known, err := k.route.links()
	if err != nil {
		closeAll()
		return nil, fmt.Errorf("read links: %w", err)
	}
	for index, l := range known {
		if l.Ours() {
			w.ours[int32(index)] = true
		}
	}
	k.watched.Store(true)
	all, either := errgroup.WithContext(ctx)
	context.AfterFunc(either, closeAll)
	for i, s := range sources {
		if conns[i] != nil { // else the kernel has no IPsec
			all.Go(func() error { return fmt.Errorf("watch %s: %w", s.what, w.receive(conns[i], s.ours)) })
		}
	}
	w.wait = func() error {
		if err := all.Wait(); ctx.Err() == nil {
			return err
		}
		return nil
	}
	return w, nil
}

// routeGroups are the rtnetlink groups for our objects.
var routeGroups = []uint32{
	unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_NEIGH,
	unix.RTNLGRP_NEXTHOP, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV4_NETCONF,
}

// subscribe opens a socket for the notifications of some groups.
func (k *Kernel) subscribe(family int, groups ...uint32) (*raw.Conn, error) {
	conn, err := dial(family, k.netns, raw.Config{})
	if err != nil {
		return nil, err
	}
	err = conn.SetReadBuffer(watchBuffer)
	for _, g := range groups {
		err = errors.Join(err, conn.JoinGroup(g))
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// receive reads until the socket is closed or broken. Lost notifications (ENOBUFS) count as ours.
func (w *Watch) receive(conn *raw.Conn, ours func(raw.Message) bool) error {
	for {
		messages, err := conn.Receive()
		if err != nil && !errors.Is(err, unix.ENOBUFS) {
			return cause(err)
		}
		wake := err != nil
		for _, m := range messages {
			wake = ours(m) || wake // isOurLink must process every link notification
		}
		if wake {
			w.wake()
		}
	}
}

// Changes returns the number of changes that a Watch has reported. watched is false if there is no Watch.
func (k *Kernel) Changes() (n uint64, watched bool) { return k.changes.Load(), k.watched.Load() }

// wake puts an element into the channel.
func (w *Watch) wake() {
	w.kernel.changes.Add(1)
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// isOurRoute reports whether an rtnetlink notification has our marks. Undecodable ones do not.
func (w *Watch) isOurRoute(m raw.Message) bool {
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		return w.isOurLink(m)
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		var header unix.IfAddrmsg
		var label string
		err := unpack(m.Data, &header, optional(unix.IFA_LABEL, &label))
		return err == nil && (w.ours[int32(header.Index)] || label == addressLabel)
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		return w.isOurNeighbour(m)
	case unix.RTM_NEWNEXTHOP, unix.RTM_DELNEXTHOP:
		n, err := decodeNexthop(m.Data)
		return err == nil && isOurNexthop(n.ID)
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		r, header, err := decodeRoute(m.Data, nil)
		return err == nil && (header.Protocol == netops.Protocol || w.overlapsPeers(r))
	case unix.RTM_NEWRULE, unix.RTM_DELRULE: // also the local rule, and all rules that precede ours
		r, err := decodeRule(m.Data)
		return err == nil && (r.protocol == netops.Protocol || r.Priority <= netops.PriorityNode)
	case unix.RTM_NEWNETCONF:
		return w.isOurSetting(m.Data)
	}
	return false
}

// overlapsPeers reports whether a foreign route overlaps the ranges of the last call of Detours.
func (w *Watch) overlapsPeers(r netops.Route) bool {
	ranges := w.kernel.detourRanges.Load()
	return ranges != nil && cidr.Overlaps(r.Dst, *ranges)
}

// isOwnChange reports whether a route was changed by this process. The kernel itself has port 0.
func (w *Watch) isOwnChange(m raw.Message) bool {
	return (m.Header.Type == unix.RTM_NEWROUTE || m.Header.Type == unix.RTM_DELROUTE) && m.Header.PID == w.self
}

// isOurLink compares the name, and updates the set of our links. Foreign links are reported while they are in a group
// of ours.
func (w *Watch) isOurLink(m raw.Message) bool {
	var header unix.IfInfomsg
	var l netops.Link
	if err := unpack(m.Data, &header, optional(unix.IFLA_IFNAME, &l.Name), optional(unix.IFLA_GROUP, &l.Group)); err != nil {
		return false
	}
	if l.Ours() && m.Header.Type == unix.RTM_NEWLINK {
		w.ours[header.Index] = true
	} else {
		delete(w.ours, header.Index) // link indexes are not reused, and each pod has a link
	}
	return l.Ours() || netops.IsOurGroup(l.Group)
}

// isOurNeighbour reports neighbours of our links, without those of tunnels, which change with traffic.
func (w *Watch) isOurNeighbour(m raw.Message) bool {
	var header unix.NdMsg
	return unpack(m.Data, &header) == nil && w.ours[header.Ifindex] &&
		(m.Header.Type == unix.RTM_NEWNEIGH || header.State != unix.NUD_NOARP)
}

// isOurSetting reports settings of our links in /proc/sys/net/ipv4/conf, such as forwarding. A change for all links is
// also reported for each link.
func (w *Watch) isOurSetting(data []byte) bool {
	const ifindex = 1 // NETCONFA_IFINDEX of linux/netconf.h
	var header netconfmsg
	var link int
	return unpack(data, &header, optional(ifindex, &link)) == nil && w.ours[int32(link)]
}

// netconfmsg is the struct of linux/netconf.h, with its padding.
type netconfmsg struct {
	Family uint8
	_      [3]uint8
}

// isOurFirewall reports whether an nf_tables notification is for our table: the table's name is the first attribute of
// all messages except that of a new generation (NFT_MSG_NEWGEN).
func isOurFirewall(m raw.Message) bool {
	const (
		nfgenmsg  = 4 // bytes of header: family, version, resource
		tableName = 1 // NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE, NFTA_SET_TABLE, …
		typeMask  = 0xff
	)
	if m.Header.Type&typeMask == unix.NFT_MSG_NEWGEN {
		return false
	}
	if bytes.Contains(m.Data, []byte(netops.Table+": ")) { // the comment of our rule in a foreign chain
		return true
	}
	var header [nfgenmsg]byte
	var table string
	return unpack(m.Data, &header, optional(tableName, &table)) == nil && table == netops.Table
}
