package path

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestMain also runs the processes of the paths.
func TestMain(m *testing.M) {
	process.Main(Run)
	os.Exit(m.Run())
}

// TestLiqoModel sends from each pod to the other: addresses are translated by connection as Liqo's documentation
// describes, and packets have the size that its MTU permits.
func TestLiqoModel(t *testing.T) {
	b := &Bed{t: t, kinds: clusters.TestedKinds()[0]}
	client, server := b.liqoModel(LiqoMTU)
	_, err := b.way(func() load.Way { return fromPodToPod(client, server) })
	require.NoError(t, err)
	for _, c := range []struct{ from, to *clusters.Cluster }{{client, server}, {server, client}} {
		t.Run(c.from.Name+" to "+c.to.Name, func(t *testing.T) {
			target := netip.AddrPortFrom(c.to.RemappedPod(0), modelPort)
			seen, err := exchange(t, c.from.Pods[0], c.to.Pods[0], target)
			require.NoError(t, err)
			if seen != c.from.RemappedPod(0) {
				t.Errorf("the pod of cluster %s sees packets from %v, want %v", c.to.Name, seen, c.from.RemappedPod(0))
			}
			expectTracked(t, c.from.Gateways[0].Handle, podAddress, c.to.RemappedPod(0), podAddress, podAddress)
			expectTracked(t, c.to.Gateways[0].Handle, podAddress, podAddress, podAddress, c.from.RemappedPod(0))
			const headers = 28 // IPv4 20 + ICMP 8
			for size, passes := range map[int]bool{LiqoMTU: true, LiqoMTU + 1: false} {
				_, err := c.from.Pods[0].Handle.Run(t.Context(), "", "ping", "-q", "-c2", "-i0.2", "-w20", "-Mdo",
					fmt.Sprint("-s", size-headers), c.to.RemappedPod(0).String())
				if (err == nil) != passes {
					t.Errorf("packets of %d bytes pass: %t, want %t: %v", size, err == nil, passes, err)
				}
			}
		})
	}
}

const modelPort = 7777

// exchange opens a TCP connection, sends text both ways and returns the source address that the receiver observes. The
// receiver listens on the pod's own address, so the destination must be translated to the pod.
func exchange(t *testing.T, from, to netns.Namespace, target netip.AddrPort) (seen netip.Addr, err error) {
	t.Helper()
	const text = "a packet"
	listener := to.For(t).Listen(netip.AddrPortFrom(podAddress, target.Port()).String())
	defer func() { _ = listener.Close() }()
	answered := make(chan error, 1)
	go func() {
		answered <- func() error {
			conn, err := listener.Accept()
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			seen = conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
			_, err = io.CopyN(conn, conn, int64(len(text)))
			return err
		}()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := from.Dial(ctx, "tcp4", target)
	if err != nil {
		return seen, err
	}
	defer func() { _ = conn.Close() }()
	back := make([]byte, len(text))
	_, errSend := io.WriteString(conn, text)
	_, errBack := io.ReadFull(conn, back)
	if string(back) != text {
		errBack = errors.Join(errBack, fmt.Errorf("%q comes back, want %q", back, text))
	}
	return seen, errors.Join(errSend, errBack, <-answered)
}

// expectTracked checks for a tracked TCP connection that a namespace has translated: its addresses in the original
// direction and in that of answers.
func expectTracked(t *testing.T, ns netns.Handle, source, destination, answerSource, answerDestination netip.Addr) {
	t.Helper()
	var found []string
	if err := ns.Do(func() error {
		flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, netlink.FAMILY_V4)
		for _, f := range flows {
			if f.Forward.DstPort == modelPort {
				found = append(found, fmt.Sprint(f.Forward.SrcIP, f.Forward.DstIP, f.Reverse.SrcIP, f.Reverse.DstIP))
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(source, destination, answerSource, answerDestination)
	for _, f := range found {
		if f == want {
			return
		}
	}
	t.Errorf("no connection %s is tracked; there are %q", want, found)
}
