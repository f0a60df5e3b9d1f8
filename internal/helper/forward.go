//go:build linux

package helper

import (
	"fmt"
	"strings"

	"liqonet.io/liqonet/internal/records"
)

// forwardDrops returns the foreign firewall chains that drop forwarded packets by default. This includes packets from
// and to peers, whatever liqonet's own table accepts.
func (l *nodeLoop) forwardDrops() (drops []records.ForwardDrop) {
	for _, c := range l.forward {
		if c.Drop {
			name := strings.Map(printable, fmt.Sprintf("%s %s %s", c.Family, c.Table, c.Name))
			drops = append(drops, records.ForwardDrop{Chain: name})
		}
	}
	return drops
}

// printable replaces characters that a terminal would interpret: the kernel accepts any bytes in a name.
func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}
