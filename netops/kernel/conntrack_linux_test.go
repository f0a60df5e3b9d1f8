package kernel

import (
	"flag"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
)

func TestFlushConntrack(t *testing.T) {
	t.Parallel()
	k := newNamespace(t).kernel()
	handle, err := k.open(unix.NETLINK_NETFILTER)
	require.NoError(t, err)
	defer handle.Close()
	remember := func(port uint16, src, dst, replySrc, replyDst string) {
		t.Helper()
		err := handle.ConntrackCreate(netlink.ConntrackTable, unix.AF_INET, &netlink.ConntrackFlow{
			FamilyType: unix.AF_INET,
			TimeOut:    600,
			Forward:    tuple(src, dst, port, 80),
			Reverse:    tuple(replySrc, replyDst, 80, port),
		})
		require.NoError(t, err)
	}
	remember(1001, "10.244.1.2", "10.11.3.4", "10.11.3.4", "10.244.1.2") // destination
	remember(1002, "10.11.3.4", "10.244.1.2", "10.244.1.2", "10.11.3.4") // source
	remember(1003, "10.244.1.2", "10.96.0.1", "10.11.3.4", "10.244.1.2") // after translation
	remember(1004, "10.244.1.2", "10.12.3.4", "10.12.3.4", "10.244.1.2") // no match

	require.NoError(t, k.FlushConntrack([]netip.Prefix{netip.MustParsePrefix("10.11.0.0/16")}))
	flows, err := handle.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
	require.NoError(t, err)
	var left []uint16
	for _, f := range flows {
		left = append(left, f.Forward.SrcPort)
	}
	if !slices.Equal(left, []uint16{1004}) {
		t.Errorf("connections left are those of ports %v, want 1004", left)
	}
}

// TestFlushWrongSources: connections to peers whose source is neither that of their pod nor the node's are deleted, all
// others stay.
func TestFlushWrongSources(t *testing.T) {
	t.Parallel()
	k := newNamespace(t).kernel()
	handle, err := k.open(unix.NETLINK_NETFILTER)
	require.NoError(t, err)
	defer handle.Close()
	prefixes := func(p string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(p)} }
	s := Sources{Peers: prefixes("10.11.0.0/16"), Pods: prefixes("10.244.1.0/24"), Node: netip.MustParseAddr("10.80.0.7")}
	for i, f := range []struct {
		src, dst, replySrc, replyDst string
		wrong                        bool
	}{
		{"10.244.1.2", "10.11.3.4", "10.11.3.4", "10.244.1.2", false},
		{"10.244.1.2", "10.11.3.4", "10.11.3.4", "172.31.0.1", true}, // masqueraded
		{"10.244.1.2", "10.11.3.4", "10.11.3.4", "10.80.0.7", true},
		{"10.244.1.2", "10.96.0.1", "10.11.3.4", "10.244.1.2", false}, // a Service
		{"10.244.1.2", "10.96.0.1", "10.11.3.4", "172.31.0.1", true},
		{"10.80.0.7", "10.11.3.4", "10.11.3.4", "10.80.0.7", false}, // of the node
		{"172.31.0.1", "10.11.3.4", "10.11.3.4", "172.31.0.1", true},
		{"192.0.2.9", "172.31.0.1", "10.11.3.4", "10.80.0.7", false}, // a NodePort
		{"192.0.2.9", "172.31.0.1", "10.11.3.4", "172.31.0.1", true},
		{"10.11.3.4", "10.244.1.2", "10.244.1.2", "10.11.3.4", false}, // of the peer
		{"10.244.1.2", "192.0.2.9", "192.0.2.9", "172.31.0.1", false}, // elsewhere
	} {
		port := uint16(1000 + i)
		require.NoError(t, handle.ConntrackCreate(netlink.ConntrackTable, unix.AF_INET, &netlink.ConntrackFlow{
			FamilyType: unix.AF_INET, TimeOut: 600, Forward: tuple(f.src, f.dst, port, 80), Reverse: tuple(f.replySrc, f.replyDst, 80, port),
		}))
		require.NoError(t, k.FlushWrongSources(s))
		flows, err := handle.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
		require.NoError(t, err)
		left := slices.ContainsFunc(flows, func(l *netlink.ConntrackFlow) bool { return l.Forward.SrcPort == port })
		if left == f.wrong {
			t.Errorf("%+v: it is left: %t", f, left)
		}
	}
}

// tuple returns one direction of a UDP flow.
func tuple(src, dst string, srcPort, dstPort uint16) netlink.IPTuple {
	return netlink.IPTuple{
		Protocol: unix.IPPROTO_UDP,
		SrcIP:    net.ParseIP(src).To4(), SrcPort: srcPort,
		DstIP: net.ParseIP(dst).To4(), DstPort: dstPort,
	}
}

// connections is the number of entries in TestFlushManyConnections. A number beyond net.netfilter.nf_conntrack_max
// requires raising that first.
var connections = flag.Int("connections", 60_000, "`NUMBER` of tracked connections to read")

// TestFlushManyConnections: the memory for reading a table does not depend on its size.
func TestFlushManyConnections(t *testing.T) {
	const most = 8 << 20 // the library's list of 60,000 takes 30 MiB
	entries := *connections
	k := newNamespace(t).kernel()
	handle, err := k.open(unix.NETLINK_NETFILTER)
	require.NoError(t, err)
	defer handle.Close()
	for i := range entries {
		src, dst := netip.AddrFrom4([4]byte{100, byte(i >> 16), byte(i >> 8), byte(i)}).String(), "10.12.0.1"
		if i%1000 == 0 {
			dst = "10.11.0.1"
		}
		if err := handle.ConntrackCreate(netlink.ConntrackTable, unix.AF_INET, &netlink.ConntrackFlow{
			FamilyType: unix.AF_INET, TimeOut: 600, Forward: tuple(src, dst, 1000, 80), Reverse: tuple(dst, src, 80, 1000),
		}); err != nil {
			t.Fatal(err)
		}
	}
	peak := heapPeak()
	begin := time.Now()
	require.NoError(t, k.FlushConntrack([]netip.Prefix{netip.MustParsePrefix("10.11.0.0/16")}))
	grown := peak()
	t.Logf("%d entries read in %v, with %d KiB more on the heap", entries, time.Since(begin).Round(time.Millisecond), grown>>10)
	if grown > most {
		t.Errorf("the heap grew by %d KiB, want %d at most", grown>>10, most>>10)
	}
	flows, err := handle.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
	require.NoError(t, err)
	if len(flows) != entries-entries/1000 {
		t.Errorf("%d connections are left, want %d", len(flows), entries-entries/1000)
	}
}

// heapPeak samples the heap until the returned function is called, which returns its maximum growth.
func heapPeak() func() int {
	size := func() int {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	runtime.GC()
	before, done, peak := size(), make(chan struct{}), make(chan int)
	go func() {
		most := 0
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			most = max(most, size()-before)
			select {
			case <-done:
				peak <- max(most, size()-before)
				return
			case <-tick.C:
			}
		}
	}()
	return func() int { close(done); return <-peak }
}
