package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/faults"
	"liqonet.io/liqonet/lab/require"
)

// TestFaults is the short form of `make faults`: each fault once, and those that somebody ends sooner. No stream may
// break, the peering must come back, and what should lose no packet loses none, but what may be the machine's; how long
// that takes is measured there. Tests of bench/pathtest have these faults with helpers as processes, in `make test`.
func TestFaults(t *testing.T) {
	inTurn(t, 4)
	for _, gateways := range []int{2, 1} {
		t.Run(fmt.Sprintf("gateways=%d", gateways), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
			defer cancel()
			l := startEmpty(ctx, t, fmt.Sprintf("e2e-faults%d", gateways), faults.Spec())
			bed, err := faults.NewBed(ctx, l, liqoctlProgram(t), gateways)
			require.NoError(t, err)
			bed.Away, bed.Lasts = 30*time.Second, 5*time.Second
			for _, f := range faults.All()[1:] { // all but none
				t.Run(f.Name, func(t *testing.T) { testFault(ctx, t, bed, f, gateways) })
			}
		})
	}
}

func testFault(ctx context.Context, t *testing.T, bed *faults.Bed, f faults.Fault, gateways int) {
	t.Helper()
	s, err := bed.Run(ctx, f)
	require.NoError(t, err)
	t.Log(s.Line())
	if s.Broken > 0 {
		t.Errorf("%d streams broke", s.Broken)
	}
	if s.Sent == 0 || s.Lost == s.Sent || s.Tried == 0 {
		t.Errorf("nothing was measured: %+v", s)
	}
	without := s.Without - s.Stalled // without packets for longer than the machine sent none
	if f.Name == "api" && gateways > 1 && without > bed.Away/2 {
		t.Errorf("%s without packets: the other gateway needs an API server that is away for %s", s.Without, bed.Away)
	}
	if s.Without > patience || s.Pause > patience {
		t.Errorf("%s without packets, longest pause %s", s.Without, s.Pause.Round(time.Millisecond))
	}
	if f.Aim.Lossless && gateways > 1 && s.Gone > 0 && without > 0 {
		t.Errorf("%d of %d packets lost, want none", s.Gone, s.Sent)
	}
}
