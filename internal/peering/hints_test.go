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

// TestCommandsOfHints has whoever wrote a kubeconfig call things so that a shell would run a part of
// their names, in the commands that hints have users copy.
func TestCommandsOfHints(t *testing.T) {
	const hostile = "a;reboot$(id)"
	const want = "'a;reboot$(id)'"
	side := Side{Cluster: &kube.Cluster{Context: hostile}, Name: "b"}
	_, renamed := inventory.ChooseName(side.Cluster, side.Name, &records.Fabric{Name: "a"})
	s := newSite(side, Installation{}, progress.Quiet{})
	e := end{site: s, peer: &end{site: site{cluster: side.Cluster, side: side, name: "d", id: "id"}}}
	e.found.peerings = []records.Peering{{Name: "c", Peer: records.Peer{ClusterID: "id"}}}
	for name, hint := range map[string]string{
		"another name": hint.Of(renamed),
		"no node":      hint.Of(s.plan()),
		"another copy": hint.Of(e.meet()),
	} {
		if strings.Count(hint, hostile) != strings.Count(hint, want) || !strings.Contains(hint, want) {
			t.Errorf("%s: %s", name, hint)
		}
	}
}
