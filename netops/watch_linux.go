package netops

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
)

// watchBuffer is the size in bytes of the buffer for notifications: a nftables transaction of kube-proxy has
// thousands. When it overflows, that counts as a change.
const watchBuffer = 4 << 20

// Watch tells of changes in the kernel until the context that it was made with ends.
type Watch struct {
	kernel  *Kernel
	self    uint32 // port of the socket that changes routes for us
	changed chan struct{}
	ours    map[int32]bool // indexes of our links
	wait    func() error
}

// Changed holds one element if something of ours changed, by whomever, also by Apply, however often: who takes it
// observes everything anew. Routes that Apply changes are no such change: gateways have tens of thousands. It is never
// closed.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Wait returns when nothing is told any more: nil after the context's end, else why.
func (w *Watch) Wait() error { return w.wait() }

// Watch begins to tell of changes of what is ours. Those from its return on are told.
//
// Routes of others to the ranges that Detours was asked for last count as ours.
//
// What the kernel does not tell: routes that go with their link (but then the link changes), and settings of
// foreign devices.
func (k *Kernel) Watch(ctx context.Context) (*Watch, error) {
	links, err := k.subscribe(unix.NETLINK_ROUTE, routeGroups...)
	if err != nil {
		return nil, fmt.Errorf("watch routes: %w", err)
	}
	firewall, err := k.subscribe(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch firewall: %w", err), links.Close())
	}
	known, err := k.route.links()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read links: %w", err), links.Close(), firewall.Close())
	}
	w := &Watch{kernel: k, self: k.route.conn.PID(), changed: make(chan struct{}, 1), ours: make(map[int32]bool)}
	for index, l := range known {
		if l.ours() {
			w.ours[int32(index)] = true
		}
	}
	k.watched.Store(true)
	both, either := errgroup.WithContext(ctx)
	context.AfterFunc(either, func() { _, _ = links.Close(), firewall.Close() })
	both.Go(func() error {
		return fmt.Errorf("watch routes: %w", w.follow(links, func(m raw.Message) bool { return w.isOurRoute(m) && !w.madeRoute(m) }))
	})
	both.Go(func() error { return fmt.Errorf("watch firewall: %w", w.follow(firewall, isOurFirewall)) })
	w.wait = func() error {
		if err := both.Wait(); ctx.Err() == nil {
			return err
		}
		return nil
	}
	return w, nil
}

// routeGroups are where rtnetlink tells of what can be ours.
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

// follow reads until the socket is closed or broken. Lost notifications (ENOBUFS) count as ours.
func (w *Watch) follow(conn *raw.Conn, ours func(raw.Message) bool) error {
	for {
		messages, err := conn.Receive()
		if err != nil && !errors.Is(err, unix.ENOBUFS) {
			return cause(err)
		}
		wake := err != nil
		for _, m := range messages {
			wake = ours(m) || wake // every link notification must be seen
		}
		if wake {
			w.wake()
		}
	}
}

// Changes returns how many changes a Watch has been notified of. watched is false if there is no Watch.
func (k *Kernel) Changes() (n uint64, watched bool) { return k.changes.Load(), k.watched.Load() }

// wake leaves an element in the channel.
func (w *Watch) wake() {
	w.kernel.changes.Add(1)
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// isOurRoute looks for our marks in a rtnetlink notification; one that cannot be read is none.
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
		return err == nil && (header.Protocol == Protocol || w.takesPeers(r))
	case unix.RTM_NEWRULE, unix.RTM_DELRULE: // the kernel's rule for the local table too, and all that come before ours
		r, err := decodeRule(m.Data)
		return err == nil && (r.protocol == Protocol || r.Priority <= priorityNode)
	case unix.RTM_NEWNETCONF:
		return w.isOurSetting(m.Data)
	}
	return false
}

// takesPeers reports whether a route of others is to what Detours asks for.
func (w *Watch) takesPeers(r Route) bool {
	ranges := w.kernel.asked.Load()
	return ranges != nil && cidr.Overlaps(r.Dst, *ranges)
}

// madeRoute reports whether the notification is of a route that this process changed. The kernel itself has the port 0.
func (w *Watch) madeRoute(m raw.Message) bool {
	return (m.Header.Type == unix.RTM_NEWROUTE || m.Header.Type == unix.RTM_DELROUTE) && m.Header.PID == w.self
}

// isOurLink tells by the name, and keeps the set of our links. One of others is told of while it is in a group of ours.
func (w *Watch) isOurLink(m raw.Message) bool {
	var header unix.IfInfomsg
	var l Link
	if err := unpack(m.Data, &header, optional(unix.IFLA_IFNAME, &l.Name), optional(unix.IFLA_GROUP, &l.Group)); err != nil {
		return false
	}
	if l.ours() && m.Header.Type == unix.RTM_NEWLINK {
		w.ours[header.Index] = true
	} else {
		delete(w.ours, header.Index) // each pod has a link, and a new one another number
	}
	return l.ours() || isOurGroup(l.Group)
}

// isOurNeighbour tells of the neighbours of our links, but those of tunnels, which come and go with packets.
func (w *Watch) isOurNeighbour(m raw.Message) bool {
	var header unix.NdMsg
	return unpack(m.Data, &header) == nil && w.ours[header.Ifindex] &&
		(m.Header.Type == unix.RTM_NEWNEIGH || header.State != unix.NUD_NOARP)
}

// isOurSetting tells of forwarding, and what else is in /proc/sys/net/ipv4/conf, of our links. That of all links
// comes for each of them too.
func (w *Watch) isOurSetting(data []byte) bool {
	const ifindex = 1 // NETCONFA_IFINDEX of linux/netconf.h
	var header netconfmsg
	var link int
	return unpack(data, &header, optional(ifindex, &link)) == nil && w.ours[int32(link)]
}

// netconfmsg is that of linux/netconf.h, with its padding.
type netconfmsg struct {
	Family uint8
	_      [3]uint8
}

// isOurFirewall looks for our table in a notification of nf_tables: of all its messages but that of a new
// generation (NFT_MSG_NEWGEN) the first attribute is the table's name.
func isOurFirewall(m raw.Message) bool {
	const (
		nfgenmsg  = 4 // bytes of header: family, version, resource
		tableName = 1 // NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE, NFTA_SET_TABLE, …
		typeMask  = 0xff
	)
	if m.Header.Type&typeMask == unix.NFT_MSG_NEWGEN {
		return false
	}
	if bytes.Contains(m.Data, []byte(Table+": ")) { // the comment of a rule in a chain of another's
		return true
	}
	var header [nfgenmsg]byte
	var table string
	return unpack(m.Data, &header, optional(tableName, &table)) == nil && table == Table
}
