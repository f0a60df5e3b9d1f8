//go:build linux

package node

import (
	"fmt"
	"strings"

	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/records"
)

// forwardDrops returns the foreign firewall chains that drop forwarded packets by default. This includes packets from
// and to peers, whatever liqonet's own table accepts.
func (l *loop) forwardDrops() (drops []records.ForwardDrop) {
	for _, c := range l.Forward {
		if c.Drop {
			name := strings.Map(publish.Printable, fmt.Sprintf("%s %s %s", c.Family, c.Table, c.Name))
			drops = append(drops, records.ForwardDrop{Chain: name})
		}
	}
	return drops
}
