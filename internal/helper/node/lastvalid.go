//go:build linux

package node

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
	"liqonet.io/liqonet/netops"
)

// objects are the objects of its cluster that a node helper has read.
type objects struct {
	namespace    string
	fabric, ipam *corev1.ConfigMap   // nil: it does not exist
	maps         []*corev1.ConfigMap // of peerings and gateways; others are ignored
	node         *corev1.Node
	pods         []*corev1.Pod // on this node
	gateways     []*corev1.Pod // pods of gateways, on any node
	apiServers   []netip.Addr
	// found is the state in which an earlier process left the kernel; nil: this process has changed it since.
	found  *netops.State
	boot   []netip.Prefix // that the boot guard blocks
	noPods serving.Ranges // addresses that no gateway's pod has; lastValid.view sets them
}

// lastValid caches the last valid version of each record, used while the current one does not decode, until it is
// readable again or deleted. It lives as long as the process. After a restart, the kernel provides the peerings, and
// the reservations the ranges to hold back.
type lastValid struct {
	fabric   *records.Fabric // nil: none was read
	peerings map[string]records.Peering
	gateways map[records.GatewayID]located
	reserved reservations
	// unclaimed are the ranges in the kernel that were of no record and not reserved when this process started, and
	// such ranges of the boot guard, as long as they may be of a peering whose ranges are not all known: without the
	// guard, its packets would leave the node unencrypted.
	unclaimed []netip.Prefix
	read      map[string]bool // peerings whose record this process has read
}

// reservations are the ranges by which peers are reached, and the numbers of peerings, by peering.
type reservations struct {
	text     string // of the record from which they were read
	ranges   map[string][]netip.Prefix
	external map[string][]netip.Prefix // among ranges; the peering uses one of them
	gateways map[string]netip.Prefix   // reserved for the gateways of each
}

func newLastValid() *lastValid {
	return &lastValid{peerings: make(map[string]records.Peering), gateways: make(map[records.GatewayID]located), read: make(map[string]bool)}
}

// hosts returns the addresses of the API server and of the node itself, independent of records.
func hosts(node *corev1.Node, apiServers []netip.Addr) (own serving.Ranges) {
	own.Add("API server", cidr.Singles(apiServers)...)
	for _, address := range node.Status.Addresses {
		if a, err := netip.ParseAddr(address.Address); err == nil && a.Is4() {
			own.Add("node address", cidr.Single(a))
		}
	}
	return own
}

// view returns the desired state of the node from the objects. A fault affects its object only: the last valid record
// is used instead, and if there is none, the peering's ranges are held back.
func (m *lastValid) view(o objects, now time.Time) (view, []serving.Fault) {
	byName := make(map[string]*corev1.ConfigMap, len(o.maps))
	for _, cm := range o.maps {
		byName[cm.Name] = cm
	}
	pods := podsOf(o.node, o.pods)
	v, faults := m.readTrusted(o, serving.Cluster{Hosts: hosts(o.node, o.apiServers), Pods: pods.prefixes()})
	v.node, v.pods, v.gateways = o.node, pods, make(map[records.GatewayID]records.Gateway)
	o.noPods = v.NoPods
	served := make(map[records.GatewayID]bool)
	for _, p := range v.Peerings {
		for _, id := range p.GatewayIDs() {
			served[id] = true
			g, ok, err := m.gatewayNode(id, byName[id.Name()], o, now)
			if err != nil {
				faults = append(faults, serving.Fault{Object: id.Name(), Peering: p.Name, Err: err})
			}
			if ok {
				v.gateways[id] = v.bounded(p, g)
			}
		}
	}
	maps.DeleteFunc(m.gateways, func(id records.GatewayID, _ located) bool { return !served[id] })
	v.aging = m.nextAge(now)
	// The store of the objects has no order: without sorting, the report would change in each pass.
	slices.SortStableFunc(faults, func(a, b serving.Fault) int { return strings.Compare(a.Object, b.Object) })
	v.refused = helper.Refusals(faults)
	return v, faults
}

// readTrusted returns the view of the records that only liqoctl writes.
func (m *lastValid) readTrusted(o objects, c serving.Cluster) (view, []serving.Fault) {
	c.Records = make(map[string]serving.Record)
	for _, cm := range o.maps {
		if id, ok := records.IdentityOf(cm.Name); ok && id.Component == records.ComponentPeering {
			p, err := cache.Record[records.Peering](cm)
			c.Records[id.Peering] = serving.Record{Peering: p, Err: err}
			m.read[id.Peering] = m.read[id.Peering] || err == nil
		}
	}
	begun := len(c.Records) > 0
	faults := append(m.readFabric(o.fabric, c, begun), m.readReservations(o.ipam)...)
	if m.fabric != nil && o.found != nil {
		m.rebuild(o, c.Records)
	}
	c.Fabric, c.Before, c.Reserved, c.Gateways = m.fabric, m.peerings, m.reserved.ranges, m.reserved.gateways
	unread := m.reserved.ranges == nil && (o.ipam != nil || begun)
	unreserved := unread
	for name := range c.Records { // reservations, as of an older backup, can lack some of a peering's ranges
		unreserved = unreserved || !m.read[name]
	}
	m.keepUnclaimed(o, c, unreserved)
	c.Unclaimed = m.unclaimed
	v := view{fabric: m.fabric, Choice: serving.Choose(c), blind: m.fabric == nil && begun, unreserved: unreserved}
	v.partial = unread && len(v.Peerings) < len(c.Records)
	for _, p := range v.Peerings {
		m.peerings[p.Name] = p
	}
	maps.DeleteFunc(m.peerings, func(name string, _ records.Peering) bool { _, there := c.Records[name]; return !there })
	maps.DeleteFunc(m.read, func(name string, _ bool) bool { _, there := c.Records[name]; return !there })
	return v, append(faults, v.Faults...)
}

// keepUnclaimed stores the ranges in the kernel that an earlier process left, and those of the boot guard, without
// those of records and reservations: these are released with them. It forgets all once the ranges of all peerings are
// known.
func (m *lastValid) keepUnclaimed(o objects, c serving.Cluster, unreserved bool) {
	if !unreserved {
		m.unclaimed = nil
		return
	}
	ranges := o.boot
	if o.found != nil {
		ranges, m.unclaimed = slices.Concat(ranges, netops.RangesFrom(*o.found)), nil
	}
	if len(ranges) == 0 {
		return
	}
	claimed := slices.Concat(slices.Collect(maps.Values(c.Reserved))...)
	for _, r := range c.Records {
		if r.Err == nil {
			claimed = append(claimed, r.Peering.Seen()...)
		}
	}
	for _, p := range ranges {
		m.unclaimed = append(m.unclaimed, cidr.Without(p, claimed)...)
	}
	slices.SortFunc(m.unclaimed, netip.Prefix.Compare)
	m.unclaimed = slices.Compact(m.unclaimed)
}

// readFabric stores the fabric if it is valid. A missing fabric means that the desired state is empty, unless there are
// peerings.
func (m *lastValid) readFabric(cm *corev1.ConfigMap, c serving.Cluster, begun bool) []serving.Fault {
	if cm == nil && !begun {
		m.fabric = nil
		return nil
	}
	f, err := records.Fabric{}, fmt.Errorf("read ConfigMap %s: it is missing, and there are peerings", records.FabricName)
	if cm != nil {
		f, err = cache.Record[records.Fabric](cm)
	}
	if err == nil {
		err = c.CheckFabric(f)
	}
	if err == nil && begun && f.Overlay.Kind == "" {
		err = errors.New("the overlay's kind is not decided, and there are peerings")
		if m.fabric != nil && m.fabric.Overlay.Kind == "" {
			m.fabric = nil // it was not usable for a peering before either
		}
	}
	if err != nil {
		return []serving.Fault{{Object: records.FabricName, Err: fmt.Errorf("fabric: %w", err)}}
	}
	m.fabric = &f
	return nil
}

// readReservations stores the ranges that are reserved for peers, if they are readable.
func (m *lastValid) readReservations(cm *corev1.ConfigMap) []serving.Fault {
	if cm == nil {
		m.reserved = reservations{}
		return nil
	}
	text := cm.Data[records.DataKey]
	if m.reserved.ranges != nil && m.reserved.text == text {
		return nil
	}
	registry, err := store.Decode(text)
	if err != nil {
		return []serving.Fault{{Object: records.IPAMName, Err: fmt.Errorf("read ConfigMap %s: %w", records.IPAMName, err)}}
	}
	m.reserved = reservations{text, make(map[string][]netip.Prefix), make(map[string][]netip.Prefix), make(map[string]netip.Prefix)}
	for _, held := range registry.List() {
		name, ok := held.Owner.Peering()
		if ok && held.Purpose == ipam.Gateways {
			m.reserved.gateways[name] = held.Range
		}
		if ok && (held.Purpose == ipam.PeerPods || held.Purpose == ipam.PeerExternal) && held.Range.Addr().Is4() {
			m.reserved.ranges[name] = append(m.reserved.ranges[name], held.Range)
			if held.Purpose == ipam.PeerExternal {
				m.reserved.external[name] = append(m.reserved.external[name], held.Range)
			}
		}
	}
	return nil
}
