package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/faults"
	"liqonet.io/liqonet/lab/spec"
)

// TestFaults is the short form of `make faults`: some faults, once. No stream may break, and the peering must come back; how
// long that takes is measured there.
func TestFaults(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	const name = "e2e-faults"
	if err := lab.Remove(ctx, name); err != nil {
		t.Fatal(err)
	}
	l, err := lab.Start(ctx, lab.Options{Name: name, Log: t.Output(), Spec: spec.Default()})
	endLab(ctx, t, name)
	if err != nil {
		t.Fatal(err)
	}
	bed, err := faults.NewBed(ctx, l, liqoctlProgram(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	bed.Away, bed.Nodes = time.Minute, 2
	some := []string{"pod-forced", "killed", "api", "kubelet", "containerd", "replaced", "upgrade"}
	if testing.Short() {
		some = []string{"killed"}
	}
	for _, f := range faults.All() {
		if !slices.Contains(some, f.Name) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			s, err := bed.Run(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(s.Line())
			if s.Broken > 0 {
				t.Errorf("%d streams broke", s.Broken)
			}
			if s.Sent == 0 || s.Lost == s.Sent || s.Tried == 0 {
				t.Errorf("nothing was measured: %+v", s)
			}
			if f.Name == "api" && s.Without > bed.Away/2 {
				t.Errorf("%s without packets: helpers need an API server that is away for %s", s.Without, bed.Away)
			}
			if s.Without > patience || s.Pause > patience {
				t.Errorf("%s without packets, longest pause %s", s.Without, s.Pause.Round(time.Millisecond))
			}
		})
	}
}
