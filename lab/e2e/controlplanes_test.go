package e2e

import (
	"context"
	"os"
	"testing"

	"liqonet.io/liqonet/lab/spec"
)

// TestControlPlanes tests objects, not packets, against real control planes without nodes. It kills and interrupts
// liqoctl at its writes and has it refuse inputs, with simulated nodes and helpers, hundreds of times. Then it runs
// many concurrent writers of reservations.
func TestControlPlanes(t *testing.T) {
	inTurn(t, 5)
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	declared := spec.Spec{Clusters: []spec.Cluster{
		{Name: "a", ControlPlaneOnly: true}, {Name: "b", ControlPlaneOnly: true}, {Name: ipamCluster, ControlPlaneOnly: true},
	}}
	if !testing.Short() {
		declared.Clusters = append(declared.Clusters, spec.Cluster{Name: "six", ControlPlaneOnly: true, IPFamilies: []spec.Family{spec.IPv6}})
	}
	l := startEmpty(ctx, t, "e2e-control", declared)
	c := liqoctl{path: liqoctlProgram(t), lab: l}
	long(t, "a cluster of IPv6 alone is refused", func(t *testing.T) { testIPv6Alone(ctx, t, c) })
	run := func(t *testing.T, test string) {
		t.Run(test, func(t *testing.T) { runLabTest(ctx, t, l, "./internal/peering", test) })
	}
	run(t, "TestLabNoNodeReady") // which concerns every run on its cluster
	run(t, "TestLabRefused")     // which compares the clusters before and after
	// Each of these has namespaces of its own, and many of its seconds are those of the namespace controller.
	tests := []string{"TestLabOvertaken"}
	if !testing.Short() {
		tests = append(tests, "TestLabKilled", "TestLabInterrupted", "TestLabRemovalKilled", "TestLabConnectedTwice", "TestLabAgainImmediately", "TestLabInterruptedBeforeOthers", "TestLabLockLost", "TestLabManyOfOneHub",
			"TestLabLostAndBack", "TestLabKeep", "TestLabSwap")
	}
	room := make(chan struct{}, 2) // each test runs twelve programs at a time
	t.Run("liqoctl", func(t *testing.T) {
		for _, test := range tests {
			t.Run(test, func(t *testing.T) {
				t.Parallel()
				room <- struct{}{}
				defer func() { <-room }()
				runLabTest(ctx, t, l, "./internal/peering", test)
			})
		}
	})
	if os.Getenv("LIQONET_CROWDS") != "" { // see make scale
		run(t, "TestLabCrowd")
	}
	t.Run("IPAM", func(t *testing.T) { testIPAM(ctx, t, c) })
}
