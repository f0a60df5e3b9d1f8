package netops

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
)

// FlushConntrack forgets the connections that have an address in one of the ranges, before or after translation:
// nat chains see only a connection's first packet, so that old ones keep their old translation until then.
func (k *Kernel) FlushConntrack(ranges []netip.Prefix) error {
	if len(ranges) == 0 {
		return nil
	}
	handle, err := k.open(unix.NETLINK_NETFILTER)
	if err != nil {
		return fmt.Errorf("open connection tracking: %w", err)
	}
	defer handle.Close()
	err = consistently(func() error {
		_, err := handle.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, flowsIn(ranges))
		return err
	})
	if err != nil {
		return fmt.Errorf("flush conntrack entries of %v: %w", ranges, err)
	}
	return nil
}

// flowsIn matches connections that have an address in one of the ranges.
type flowsIn []netip.Prefix

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (f flowsIn) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	for _, ip := range []net.IP{flow.Forward.SrcIP, flow.Forward.DstIP, flow.Reverse.SrcIP, flow.Reverse.DstIP} {
		addr, _ := netip.AddrFromSlice(ip.To4())
		if cidr.Contains(f, addr) {
			return true
		}
	}
	return false
}
