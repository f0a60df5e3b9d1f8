package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
)

func objectChecks() []Check {
	return []Check{
		{
			ID: "LQ-OBJECTS-INSTALLED", What: "liqonet is installed in the namespace: its DaemonSet and its ConfigMap fabric exist.",
			Needs: []string{"LQ-API-REACHABLE"},
			Cause: "liqonet was never installed here, was removed, or is installed in another namespace.",
			Fix:   "liqoctl network init --context CONTEXT, or name its namespace with --namespace.",
			cluster: func(f *facts) outcome {
				switch err := f.Errors[observe.Elsewhere]; {
				case err != nil && hint.Of(err) != "":
					return failed("%v", err).hinted(hint.Of(err))
				case err != nil:
					return skipped(kube.Unread(err).Error())
				case f.Errors[observe.Objects] != nil:
					return skipped(kube.Unread(f.Errors[observe.Objects]).Error())
				case f.helpers() == nil:
					return failed("there is no DaemonSet %s in namespace %s", records.NodeName, f.Namespace)
				case f.Errors[observe.Records] == nil && f.ConfigMaps[records.FabricName] == nil:
					return failed("there is no ConfigMap %s in namespace %s", records.FabricName, f.Namespace)
				}
				return passed()
			},
		},
		{
			ID: "LQ-OBJECTS-RANGES",
			What: "No address that the cluster uses lies in the ranges by which it reaches the peer: those of API servers, external addresses " +
				"of nodes, and the routes and addresses that nodes report.",
			Needs: []string{"LQ-OBJECTS-INSTALLED"},
			Cause: "A network was added around the cluster since the peering was made. From pods and nodes, these addresses now lead to the peer.",
			Fix: "liqoctl network disconnect --context CONTEXT --remote-context REMOTE, then liqoctl network connect: other addresses are chosen. " +
				"Or give the network other addresses.",
			reads: []fact{observe.Records, observe.Leases, observe.Servers}, side: (*side).rangesInUse,
		},
	}
}

// damaged lists the records of liqoctl that cannot be read.
func (f *facts) damaged() outcome {
	var seen, names []string
	for _, name := range slices.Sorted(maps.Keys(f.Damaged)) {
		switch id, _ := records.IdentityOf(name); id.Component {
		case records.ComponentFabric, records.ComponentIPAM, records.ComponentPeering:
			seen, names = append(seen, f.Problem(name)), append(names, name)
		}
	}
	if len(seen) == 0 {
		return passed()
	}
	return judged(Failed, seen).naming("OBJECT", names[0])
}

// reservationsAgree evaluates the reservations of addresses.
func (f *facts) reservationsAgree() outcome {
	var seen, advice []string
	for _, finding := range f.findings {
		seen = append(seen, finding.String())
		if !slices.Contains(advice, finding.Hint) {
			advice = append(advice, finding.Hint)
		}
	}
	return judged(Failed, seen).hinted(strings.Join(advice, "; "))
}

func (s *side) rangesInUse() outcome {
	if s.record == nil {
		return skipped("the peering has no record that can be read")
	}
	var seen []string
	for _, u := range s.used {
		for _, r := range s.record.Seen() {
			if !u.Wide() && u.Addresses.Overlaps(r) {
				seen = append(seen, fmt.Sprintf("%s is in use, and %s leads to the peer", u, r))
			}
		}
	}
	return judged(Failed, seen)
}
