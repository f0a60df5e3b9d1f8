package netops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// watchBuffer is the size in bytes of the buffer for notifications: a nftables transaction of kube-proxy has
// thousands. When it overflows, that counts as a change.
const watchBuffer = 4 << 20

// Watch tells of changes in the kernel until the context that it was made with ends.
type Watch struct {
	changed chan struct{}
	ended   chan struct{} // closed at the end, after err was set
	err     error
}

// Changed holds one element if something of ours changed, by whomever, also by Apply, however often: who takes it
// observes everything anew. It is never closed.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Wait returns when nothing is told any more: nil after the context's end, else why.
func (w *Watch) Wait() error {
	<-w.ended
	return w.err
}

// Watch begins to tell of changes of what is ours. Those from its return on are told.
//
// What the kernel does not tell: routes that go with their link (but then the link changes), and settings of
// foreign devices.
func (k *Kernel) Watch(ctx context.Context) (*Watch, error) {
	links, err := dial(unix.NETLINK_ROUTE, k.netns, raw.Config{})
	if err != nil {
		return nil, fmt.Errorf("watch routes: %w", err)
	}
	firewall, err := dial(unix.NETLINK_NETFILTER, k.netns, raw.Config{})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch firewall: %w", err), links.Close())
	}
	w := watcher{changed: make(chan struct{}, 1), ours: make(map[int32]bool)}
	if err := w.join(links, firewall); err != nil {
		return nil, errors.Join(err, links.Close(), firewall.Close())
	}
	if err := w.learnLinks(k); err != nil {
		return nil, errors.Join(err, links.Close(), firewall.Close())
	}
	either, end := context.WithCancelCause(ctx)
	context.AfterFunc(either, func() { _, _ = links.Close(), firewall.Close() })
	var both sync.WaitGroup
	both.Go(func() { end(fmt.Errorf("watch routes: %w", w.follow(links, w.isOurRoute))) })
	both.Go(func() { end(fmt.Errorf("watch firewall: %w", w.follow(firewall, isOurFirewall))) })
	watch := &Watch{changed: w.changed, ended: make(chan struct{})}
	go func() {
		both.Wait()
		if ctx.Err() == nil {
			watch.err = context.Cause(either)
		}
		close(watch.ended)
	}()
	return watch, nil
}

// watcher reads notifications.
type watcher struct {
	changed chan struct{}
	ours    map[int32]bool // indexes of our links
}

// join subscribes to what is ours among it.
func (w *watcher) join(links, firewall *raw.Conn) error {
	groups := []uint32{
		unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_NEIGH,
		unix.RTNLGRP_NEXTHOP, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV4_NETCONF,
	}
	for _, g := range groups {
		if err := links.JoinGroup(g); err != nil {
			return fmt.Errorf("watch rtnetlink group %d: %w", g, err)
		}
	}
	if err := firewall.JoinGroup(unix.NFNLGRP_NFTABLES); err != nil {
		return fmt.Errorf("watch firewall: %w", err)
	}
	return errors.Join(links.SetReadBuffer(watchBuffer), firewall.SetReadBuffer(watchBuffer))
}

// learnLinks notes the indexes of our links that exist already.
func (w *watcher) learnLinks(k *Kernel) error {
	s, err := dialRoute(k.netns)
	if err != nil {
		return err
	}
	links, err := s.links()
	for index, l := range links {
		w.ours[int32(index)] = l.ours()
	}
	return errors.Join(err, s.conn.Close())
}

// follow reads until the socket is closed or broken. Lost notifications (ENOBUFS) count as ours.
func (w *watcher) follow(conn *raw.Conn, ours func(raw.Message) bool) error {
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

// wake leaves an element in the channel.
func (w *watcher) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// isOurRoute looks for our marks in a rtnetlink notification; one that cannot be read is none.
func (w *watcher) isOurRoute(m raw.Message) bool {
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		return w.isOurLink(m)
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		var header unix.IfAddrmsg
		if _, err := split(m.Data, &header); err != nil {
			return false
		}
		_, label, err := decodeAddress(m.Data)
		return err == nil && (w.ours[int32(header.Index)] || label == addressLabel)
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		var header unix.NdMsg
		_, err := split(m.Data, &header)
		return err == nil && w.ours[header.Ifindex]
	case unix.RTM_NEWNEXTHOP, unix.RTM_DELNEXTHOP:
		n, err := decodeNexthop(m.Data, nil)
		return err == nil && isOurNexthop(n.ID)
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		var header unix.RtMsg
		_, err := split(m.Data, &header)
		return err == nil && header.Protocol == Protocol
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		return isOurRule(m.Data)
	case unix.RTM_NEWNETCONF:
		return w.isOurSetting(m.Data)
	}
	return false
}

// isOurLink tells by the name, and keeps the set of our links. One of others is told of while it is in a group of ours.
func (w *watcher) isOurLink(m raw.Message) bool {
	var header unix.IfInfomsg
	ad, err := split(m.Data, &header)
	if err != nil {
		return false
	}
	named, grouped := false, false
	for ad.Next() {
		switch ad.Type() {
		case unix.IFLA_IFNAME:
			named = strings.HasPrefix(ad.String(), Prefix)
		case unix.IFLA_GROUP:
			grouped = isOurGroup(ad.Uint32())
		}
	}
	if named {
		w.ours[header.Index] = m.Header.Type == unix.RTM_NEWLINK
	} else {
		delete(w.ours, header.Index)
	}
	return named || grouped
}

// isOurSetting tells of forwarding, and what else is in /proc/sys/net/ipv4/conf, of our links. That of all links
// comes for each of them too.
func (w *watcher) isOurSetting(data []byte) bool {
	const ifindex = 1 // NETCONFA_IFINDEX of linux/netconf.h
	var header netconfmsg
	ad, err := split(data, &header)
	if err != nil {
		return false
	}
	for ad.Next() {
		if ad.Type() == ifindex {
			return w.ours[ad.Int32()]
		}
	}
	return false
}

// netconfmsg is that of linux/netconf.h, with its padding.
type netconfmsg struct {
	Family uint8
	_      [3]uint8
}

// isOurRule takes the kernel's rule for the local table for ours too.
func isOurRule(data []byte) bool {
	r, err := decodeRule(data)
	return err == nil && (r.protocol == Protocol || r.Rule == kernelRule.Rule)
}

// isOurFirewall looks for our table in a notification of nf_tables: of all its messages but that of a new
// generation (NFT_MSG_NEWGEN) the first attribute is the table's name.
func isOurFirewall(m raw.Message) bool {
	const (
		nfgenmsg  = 4 // bytes of header: family, version, resource
		tableName = 1 // NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE, NFTA_SET_TABLE, …
		typeMask  = 0xff
	)
	if len(m.Data) < nfgenmsg || m.Header.Type&typeMask == unix.NFT_MSG_NEWGEN {
		return false
	}
	if bytes.Contains(m.Data, []byte(Table+": ")) { // the comment of a rule in a chain of another's
		return true
	}
	ad, err := raw.NewAttributeDecoder(m.Data[nfgenmsg:])
	if err != nil {
		return false
	}
	for ad.Next() {
		if ad.Type() == tableName && ad.String() == Table {
			return true
		}
	}
	return false
}
