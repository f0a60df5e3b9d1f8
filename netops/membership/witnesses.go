package membership

import (
	"net/netip"
	"slices"
)

// MaxWitnesses is the number of nodes that report a gateway that does not answer. It bounds the writes to the API
// server, regardless of the number of nodes.
const MaxWitnesses = 3

// Witnesses returns the nodes that are to report when a gateway does not answer: the present ones that are alive, and
// others of the live nodes, in their order. The gateway's own node is lost together with the gateway, so it is one only
// if no other node is alive; own is its address if it is alive, else the zero value.
func Witnesses(present, live []netip.Addr, own netip.Addr) []netip.Addr {
	if len(live) == 0 && own.IsValid() {
		return []netip.Addr{own}
	}
	all := slices.DeleteFunc(slices.Clone(present), func(a netip.Addr) bool { return !slices.Contains(live, a) })
	for _, a := range live {
		if len(all) < MaxWitnesses && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}
