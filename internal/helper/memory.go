//go:build linux

package helper

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// nodeObjects are what a node helper has read of its cluster.
type nodeObjects struct {
	namespace    string
	fabric, ipam *corev1.ConfigMap   // nil: there is none
	maps         []*corev1.ConfigMap // of peerings and gateways; others are left alone
	node         *corev1.Node
	pods         []*corev1.Pod // that run on the node
	gateways     []*corev1.Pod // pods of gateways, on any node
	apiServers   []netip.Addr

	// What no gateway's pod has an address of: addresses of the cluster, and ranges of peers. memory.view sets it.
	noPods protected
	taken  *apart
}

// memory is what a node helper keeps of the records that it could read: a record that is damaged later is taken as it
// was, until it can be read again or is deleted. It lives as long as the process. After that the reservations tell
// which ranges to hold back.
type memory struct {
	fabric   *records.Fabric // nil: none was read
	peerings map[string]records.Peering
	gateways map[records.GatewayID]located
	reserved reservations
}

// reservations are the ranges by which peers are reached, by peering.
type reservations struct {
	text   string // of the record that they were read from
	ranges map[string][]netip.Prefix
}

func newMemory() *memory {
	return &memory{peerings: make(map[string]records.Peering), gateways: make(map[records.GatewayID]located)}
}

// fault is an object whose record is not taken as it is.
type fault struct {
	object  string // name of the ConfigMap
	peering string // "": it concerns none, or all
	err     error
}

// refusals are what keeps peerings from being served as their records say, by peering: the first reason of each. That
// the pod of a gateway is not there is none: so it is whenever one is replaced.
func refusals(faults []fault) map[string]string {
	all := make(map[string]string)
	for _, f := range faults {
		if _, told := all[f.peering]; !told && f.peering != "" && !errors.Is(f.err, errNoPod) {
			if reason := strings.Map(printable, f.err.Error()); len(all) < records.MaxRefused {
				all[f.peering] = reason[:min(len(reason), records.MaxReason)]
			}
		}
	}
	return all
}

var (
	errMissing   = errors.New("it is missing, and there are peerings")
	errUndecided = errors.New("the overlay's kind is not decided, and there are peerings")
)

// view returns what the objects ask of the node. A fault stays with its object: the last good record is taken in its
// place, and where none is known, the peering's ranges are held back.
func (m *memory) view(o nodeObjects, now time.Time) (nodeView, []fault) {
	byName := make(map[string]*corev1.ConfigMap, len(o.maps))
	for _, cm := range o.maps {
		byName[cm.Name] = cm
	}
	v := nodeView{node: o.node.Name, gateways: make(map[records.GatewayID]records.Gateway), pods: podsOf(o.node, o.pods)}
	faults := m.readTrusted(o, hosts(o.node, o.apiServers).withPods(v.pods), &v)
	o.noPods, o.taken = hosts(o.node, o.apiServers).withoutPods(v.fabric), v.taken
	served := make(map[records.GatewayID]bool)
	for _, p := range v.peerings {
		for i := range p.Gateways {
			id := records.GatewayID{Peering: p.Name, Number: i + 1}
			served[id] = true
			g, ok, err := m.locate(id, byName[id.Name()], o, now)
			if err != nil {
				faults = append(faults, fault{id.Name(), p.Name, err})
			}
			if ok {
				v.gateways[id] = v.bounded(p, g)
			}
		}
	}
	maps.DeleteFunc(m.gateways, func(id records.GatewayID, _ located) bool { return !served[id] })
	v.aging = m.nextAge(now)
	// The store that the objects come from has no order: the report would say something else in each pass.
	slices.SortStableFunc(faults, func(a, b fault) int { return strings.Compare(a.object, b.object) })
	v.refused = refusals(faults)
	return v, faults
}

// readTrusted puts into the view what follows from the records that only liqoctl writes. own are addresses that are no
// peer's.
func (m *memory) readTrusted(o nodeObjects, own protected, v *nodeView) []fault {
	begun := slices.ContainsFunc(o.maps, func(cm *corev1.ConfigMap) bool {
		id, ok := records.IdentityOf(cm.Name)
		return ok && id.Component == records.ComponentPeering
	})
	faults := m.readFabric(o.fabric, own, begun)
	v.fabric, v.blind = m.fabric, m.fabric == nil && begun
	faults = append(faults, m.readReservations(o.ipam)...)
	v.unreserved = m.reserved.ranges == nil && (o.ipam != nil || begun)
	unserved, more := m.readPeerings(o.maps, own, v)
	return slices.Concat(faults, more, m.hold(v, unserved, own))
}

// readFabric keeps the fabric if it can be taken. A missing one means that nothing is wanted, unless there are
// peerings.
func (m *memory) readFabric(cm *corev1.ConfigMap, own protected, begun bool) []fault {
	if cm == nil {
		if begun {
			return []fault{{object: records.FabricName, err: fmt.Errorf("read ConfigMap %s: %w", records.FabricName, errMissing)}}
		}
		m.fabric = nil
		return nil
	}
	f, err := recordOf[records.Fabric](cm)
	if err == nil {
		err = own.checkFabric(f)
	}
	if err == nil && begun && f.Overlay.Kind == "" {
		err = errUndecided
		if m.fabric != nil && m.fabric.Overlay.Kind == "" {
			m.fabric = nil // it was good for no peering either
		}
	}
	if err != nil {
		return []fault{{object: records.FabricName, err: fmt.Errorf("fabric: %w", err)}}
	}
	m.fabric = &f
	return nil
}

// readReservations keeps the ranges that are reserved for peers, if they can be read.
func (m *memory) readReservations(cm *corev1.ConfigMap) []fault {
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
		return []fault{{object: records.IPAMName, err: fmt.Errorf("read ConfigMap %s: %w", records.IPAMName, err)}}
	}
	m.reserved = reservations{text, make(map[string][]netip.Prefix)}
	for _, held := range registry.List() {
		name, ok := held.Owner.Peering()
		if ok && (held.Purpose == ipam.PeerPods || held.Purpose == ipam.PeerExternal) && held.Range.Addr().Is4() {
			m.reserved.ranges[name] = append(m.reserved.ranges[name], held.Range)
		}
	}
	return nil
}
