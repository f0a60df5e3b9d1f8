package main

import (
	"testing"
	"time"

	"liqonet.io/liqonet/bench/path"
)

// TestFloods sends 64 streams through gateways, whose memory stays under the limit of their containers, and another flow goes on.
// In so short a sample the memory would do so without a limit of buffers, too: TestBuffersAreLimited of netops/tunnel would not.
func TestFloods(t *testing.T) {
	s := strain{kinds: shortPlan().kinds, quota: 1, sample: 3 * time.Second}
	all := floods()
	r, err := s.measure(t.Context(), all[len(all)-1])
	if err != nil {
		t.Fatal(err)
	}
	if err := r.write(t.Output(), "64 TCP streams"); err != nil {
		t.Fatal(err)
	}
	if r.peak > path.MemoryLimit {
		t.Errorf("a gateway took %d MiB, want %d at most", r.peak>>20, path.MemoryLimit>>20)
	}
	if r.other == 0 {
		t.Error("nothing arrives of another flow")
	}
	expectNoChildren(t)
}
