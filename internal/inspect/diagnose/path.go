package diagnose

import (
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/pathtest"
)

func peerChecks() []Check {
	return []Check{
		{
			ID: "LQ-PEER-EXISTS", What: "Both clusters have the peering. With --remote-context only.",
			Needs: []string{"LQ-API-REACHABLE", "LQ-API-ANSWERS", "LQ-OBJECTS-INSTALLED", "LQ-OBJECTS-DAMAGED", "LQ-OBJECTS-INTACT"},
			Cause: "The peering was removed in one cluster only, or that cluster was made anew.",
			Fix:   "liqoctl network connect makes it again; liqoctl network disconnect PEER --context CONTEXT --one-side removes what is left here.",
			side: func(s *side) outcome {
				switch {
				case s.peerFacts == nil:
					return skipped("name the other cluster with --remote-context")
				case s.peerFacts.Errors[peerings] != nil || s.peerFacts.Errors[observe.Records] != nil:
					return failed("the peerings of %s cannot be read", s.peerFacts.name)
				case s.peer == nil:
					return failed("cluster %q does not have the peering", s.peerFacts.name)
				}
				return passed()
			},
		},
		{
			ID: "LQ-PEER-AGREES", What: "Both clusters have the same MTU, CIDRs, names and WireGuard server in their records.",
			Needs: []string{"LQ-PEER-EXISTS"},
			Cause: "A connect was interrupted, or a record was edited by hand.",
			Fix:   health.Update,
			side: func(s *side) outcome {
				if s.peer == nil {
					return skipped("the other cluster's side is not known")
				}
				var seen []string
				for _, d := range status.Disagreements(s.status, s.peer.status) {
					if d.About != "state" { // both sides have their own findings
						seen = append(seen, fmt.Sprintf("%s: %s here, %s in %s", d.About, d.Local, d.Remote, s.peer.name))
					}
				}
				return judged(Failed, seen)
			},
		},
	}
}

func pathChecks() []Check {
	return []Check{
		{
			ID: "LQ-PATH-PACKETS", What: "Pods and nodes of both clusters reach pods of the other, by all checks of network test but source. With --probe only.",
			Needs: []string{"LQ-PATH-VERIFIED"},
			Cause: "What all lost packets have in common is at fault: a node that sends, a node that receives, a size, or a Service.",
			Fix: "liqoctl network test --context CONTEXT --remote-context REMOTE shows the matrix. liqoctl network trace with --live, " +
				"between pods on the nodes that are named, shows the rule that drops packets. If only tcp fails, repeat this after a minute: path MTUs are measured every 30 seconds.",
			reads: []fact{packets}, side: func(s *side) outcome { return s.probed(func(name string) bool { return name != "source" }) },
		},
		{
			ID: "LQ-PATH-SOURCE", What: "The peer sees pods and nodes by their own translated addresses. With --probe only.",
			Needs: []string{"LQ-PATH-VERIFIED", "LQ-PATH-PACKETS"},
			Cause: "A network plugin or another program masquerades packets to the peer before liqonet's rules.",
			Fix:   "Exclude the peer's CIDRs from its masquerading (nonMasqueradeCIDRs). See docs/network-plugins.md.",
			reads: []fact{packets}, side: func(s *side) outcome { return s.probed(func(name string) bool { return name == "source" }) },
		},
	}
}

// probed evaluates the packets that this side sent.
func (s *side) probed(own func(check string) bool) outcome {
	failures := make(map[string]int)
	var lost []pathtest.Check
	for _, c := range s.paths {
		if c.From.Cluster == s.name && c.State == pathtest.Failed && own(string(c.Name)) {
			failures[string(c.Name)]++
			lost = append(lost, c)
		}
	}
	if len(lost) == 0 {
		return passed()
	}
	first := lost[0]
	return failed("check %[2]s failed %[1]d times, first from %[3]s to %[4]s: %[5]s, expected %[6]s%[7]s",
		failures[string(first.Name)], first.Name, first.From, first.To, first.Seen, first.Expected, common(lost))
}

// common describes what all lost packets have in common, if there are several.
func common(lost []pathtest.Check) string {
	all := func(same func(c pathtest.Check) bool) bool {
		return len(lost) > 1 && !slices.ContainsFunc(lost, func(c pathtest.Check) bool { return !same(c) })
	}
	first := lost[0]
	switch {
	case all(func(c pathtest.Check) bool { return c.From == first.From }):
		return fmt.Sprintf("; all %d failures are from %s", len(lost), first.From)
	case all(func(c pathtest.Check) bool { return c.From.Node == first.From.Node }):
		return fmt.Sprintf("; all %d failures are from node %s", len(lost), first.From.Node)
	case first.To.Node != "" && all(func(c pathtest.Check) bool { return c.To.Node == first.To.Node }):
		return fmt.Sprintf("; all %d failures are to node %s", len(lost), first.To.Node)
	}
	return ""
}
