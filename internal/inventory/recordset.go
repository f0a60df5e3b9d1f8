package inventory

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
)

// RecordSet returns the records from which kernels are configured. It leaves out records that are damaged, as helpers
// do, and records that are not complete; open are the names of both.
func RecordSet(objects []*corev1.ConfigMap, nodes []records.Node) (set records.Set, open []string) {
	set = records.Set{Nodes: nodes, Gateways: make(map[records.GatewayID]records.Gateway)}
	for _, cm := range objects {
		text := cm.Data[records.DataKey]
		switch id, _ := records.IdentityOf(cm.Name); id.Component {
		case records.ComponentFabric:
			if f, err := records.Decode[records.Fabric](text); err == nil && f.Overlay.Kind != "" {
				set.Fabric = &f
				continue
			}
		case records.ComponentPeering:
			if p, err := records.Decode[records.Peering](text); err == nil {
				set.Peerings = append(set.Peerings, p)
				continue
			}
		case records.ComponentGateway:
			if g, err := records.Decode[records.Gateway](text); err == nil {
				set.Gateways[records.GatewayID{Peering: id.Peering, Number: id.Gateway}] = g
			}
			continue // what it has not reported, no operation decides
		default:
			continue
		}
		open = append(open, cm.Name)
	}
	slices.SortStableFunc(set.Peerings, func(a, b records.Peering) int { return strings.Compare(a.Name, b.Name) })
	return set, open
}
