package e2e

import (
	"context"
	"os"
	"testing"

	"liqonet.io/liqonet/lab/spec"
)

// TestInterruption kills and interrupts liqoctl after every write, and has it refuse inputs, against two real control
// planes with simulated nodes and helpers. It tests the objects that liqoctl writes and removes, hundreds of times, not
// packets.
func TestInterruption(t *testing.T) {
	inTurn(t, 4)
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	l := startEmpty(ctx, t, "e2e-interruption", spec.Spec{Clusters: []spec.Cluster{{Name: "a", ControlPlaneOnly: true}, {Name: "b", ControlPlaneOnly: true}}})
	tests := []string{
		"TestLabRefused", "TestLabNoNodeReady", "TestLabKilled", "TestLabInterrupted", "TestLabKeep", "TestLabLostAndBack",
		"TestLabRemovalKilled", "TestLabConnectedTwice", "TestLabOvertaken", "TestLabSwap",
		"TestLabAgainAtOnce", "TestLabInterruptedBeforeOthers", "TestLabLockLost", "TestLabManyOfOneHub",
	}
	if os.Getenv("LIQONET_CROWDS") != "" { // see make scale
		tests = append(tests, "TestLabCrowd")
	}
	for _, test := range tests {
		t.Run(test, func(t *testing.T) { runLabTest(ctx, t, l, "./internal/peering", test) })
	}
}
