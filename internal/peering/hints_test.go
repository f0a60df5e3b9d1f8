package peering

import (
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// TestCommandsOfHints: names from a hostile kubeconfig are quoted in the commands of hints, so that a shell does not
// run a part of them.
func TestCommandsOfHints(t *testing.T) {
	const hostile = "a;reboot$(id)"
	const want = "'a;reboot$(id)'"
	side := Side{Cluster: &kube.Cluster{Context: hostile}, Name: "b"}
	_, _, renamed := inventory.ChooseName(side.Cluster, side.Name, &records.Fabric{Name: "a"}, true)
	s := newSite(side, Installation{}, progress.Quiet{})
	m := member{site: s, peer: records.Offer{Cluster: records.Party{ID: "id", Name: "d"}}}
	m.observed.peerings = []records.Peering{{Name: "c", Peer: records.Peer{ClusterID: "id"}}}
	for name, hint := range map[string]string{
		"another name": hint.Of(renamed),
		"no node":      hint.Of(s.plan()),
		"another copy": hint.Of(m.resolvePeering()),
	} {
		if strings.Count(hint, hostile) != strings.Count(hint, want) || !strings.Contains(hint, want) {
			t.Errorf("%s: %s", name, hint)
		}
	}
}
