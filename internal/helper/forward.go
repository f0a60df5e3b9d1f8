//go:build linux

package helper

import (
	"fmt"
	"strings"

	"liqonet.io/liqonet/internal/records"
)

// forwardDrops tells which firewalls of others drop what no rule of theirs accepts: forwarded packets of peers and for
// peers among it, whatever our own table says.
func (l *nodeLoop) forwardDrops() (drops []records.ForwardDrop) {
	for _, c := range l.forward {
		if c.Drop {
			name := strings.Map(printable, fmt.Sprintf("%s %s %s", c.Family, c.Table, c.Name))
			drops = append(drops, records.ForwardDrop{Chain: name})
		}
	}
	return drops
}

// printable replaces what a terminal would not show as it is: the kernel takes any bytes for a name.
func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}
