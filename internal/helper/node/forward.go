//go:build linux

package node

import (
	"fmt"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// forwardDrops returns the foreign firewall chains that drop forwarded packets by default. This includes packets from
// and to peers, whatever liqonet's own table accepts.
func (l *loop) forwardDrops() (drops []records.ForwardDrop) {
	for _, c := range l.Forward {
		if c.Drop {
			name := netops.Printable(fmt.Sprintf("%s %s %s", c.Family, c.Table, c.Name))
			drops = append(drops, records.ForwardDrop{Chain: name})
		}
	}
	return drops
}
