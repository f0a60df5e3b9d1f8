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
	l := startEmpty(ctx, t, "e2e-control", spec.Spec{Clusters: []spec.Cluster{
		{Name: "a", ControlPlaneOnly: true}, {Name: "b", ControlPlaneOnly: true}, {Name: ipamCluster, ControlPlaneOnly: true},
		{Name: "six", ControlPlaneOnly: true, IPFamilies: []spec.Family{spec.IPv6}},
	}})
	tests := []string{
		"TestLabRefused", "TestLabNoNodeReady", "TestLabKilled", "TestLabInterrupted", "TestLabKeep", "TestLabLostAndBack",
		"TestLabRemovalKilled", "TestLabConnectedTwice", "TestLabOvertaken", "TestLabSwap",
	}
	if !testing.Short() {
		tests = append(tests, "TestLabAgainImmediately", "TestLabInterruptedBeforeOthers", "TestLabLockLost", "TestLabManyOfOneHub")
	}
	if os.Getenv("LIQONET_CROWDS") != "" { // see make scale
		tests = append(tests, "TestLabCrowd")
	}
	for _, test := range tests {
		t.Run(test, func(t *testing.T) { runLabTest(ctx, t, l, "./internal/peering", test) })
	}
	c := liqoctl{path: liqoctlProgram(t), lab: l}
	t.Run("a cluster of IPv6 alone is refused", func(t *testing.T) { testIPv6Alone(ctx, t, c) })
	t.Run("IPAM", func(t *testing.T) { testIPAM(ctx, t, c) })
}
