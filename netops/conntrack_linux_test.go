package netops

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestFlushConntrack(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	k := ns.kernel()
	handle, err := k.open(unix.NETLINK_NETFILTER)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	remember := func(port uint16, src, dst, replySrc, replyDst string) {
		t.Helper()
		err := handle.ConntrackCreate(netlink.ConntrackTable, unix.AF_INET, &netlink.ConntrackFlow{
			FamilyType: unix.AF_INET,
			TimeOut:    600,
			Forward:    tuple(src, dst, port, 80),
			Reverse:    tuple(replySrc, replyDst, 80, port),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	remember(1001, "10.244.1.2", "10.11.3.4", "10.11.3.4", "10.244.1.2") // destination
	remember(1002, "10.11.3.4", "10.244.1.2", "10.244.1.2", "10.11.3.4") // source
	remember(1003, "10.244.1.2", "10.96.0.1", "10.11.3.4", "10.244.1.2") // after translation
	remember(1004, "10.244.1.2", "10.12.3.4", "10.12.3.4", "10.244.1.2") // elsewhere

	if err := k.FlushConntrack([]netip.Prefix{netip.MustParsePrefix("10.11.0.0/16")}); err != nil {
		t.Fatal(err)
	}
	flows, err := handle.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
	if err != nil {
		t.Fatal(err)
	}
	var left []uint16
	for _, f := range flows {
		left = append(left, f.Forward.SrcPort)
	}
	if !slices.Equal(left, []uint16{1004}) {
		t.Errorf("connections left are those of ports %v, want 1004", left)
	}
}

// tuple is one direction of a UDP flow.
func tuple(src, dst string, srcPort, dstPort uint16) netlink.IPTuple {
	return netlink.IPTuple{
		Protocol: unix.IPPROTO_UDP,
		SrcIP:    net.ParseIP(src).To4(), SrcPort: srcPort,
		DstIP: net.ParseIP(dst).To4(), DstPort: dstPort,
	}
}
