package diagnose

import (
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// TestCommandsToCopy checks that each context, namespace and peering name is one word of a command to copy. A name that
// contains a placeholder is not replaced again.
func TestCommandsToCopy(t *testing.T) {
	const evil = "x;echo CONTEXT NAMESPACE PEER REMOTE OTHER BROKEN $(id) 'y"
	s := sideOf(evil)
	s.Namespace, s.status.Peer, s.remote = evil, evil, evil
	s.Others, s.peerings = []string{evil}, []status.Peering{s.status}
	for _, c := range Table() {
		o := failed("it failed")
		if c.ID == "LQ-LEFTOVERS-INSTALLATION" || c.ID == "LQ-LEFTOVERS-PEERING" {
			o = c.cluster(s.facts)
		}
		got := c.finding(s, o)
		if rest := strings.ReplaceAll(got.Fix, kube.ShellWord(evil), ""); got.State != Failed || strings.Contains(rest, "$(id)") {
			t.Errorf("%s: %s: %s", c.ID, got.State, got.Fix)
		}
	}
}

// TestObservationsAreBounded checks that a gateway's report cannot fill the screen.
func TestObservationsAreBounded(t *testing.T) {
	s := sideOf("a")
	s.Errors[peerings] = nil
	s.status.Findings = health.Gateway(health.Observation{Status: &records.Status{Failed: []string{strings.Repeat("no\n", 100_000)}}})
	if got := runCheck(t, "LQ-GATEWAY-APPLIED", s); got.State != Failed || len(got.Observed) > 3000 || strings.Contains(got.Observed, "\n") {
		t.Errorf("%s, %d bytes", got.State, len(got.Observed))
	}
}
