//go:build linux

package node

import (
	"fmt"
	"os"
	"strings"

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

// notForwarding reports whether the kernel does not forward packets of pods: net.ipv4.ip_forward is 0. Kubernetes needs
// 1, which hardened images and restarts of sysctl services reset. Links of this program have settings of their own.
func notForwarding() bool {
	value, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	return err == nil && strings.TrimSpace(string(value)) == "0"
}
