package path

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

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
			// The receiver listens on the pod's own address, so the destination must be translated to the pod.
			c.to.Pods[0].For(t).ServeSources(netip.AddrPortFrom(podAddress, modelPort).String())
			seen, err := c.from.Pods[0].Source(netip.AddrPortFrom(c.to.RemappedPod(0), modelPort))
			require.NoError(t, err)
			if seen != c.from.RemappedPod(0).String() {
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
