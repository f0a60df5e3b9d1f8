package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/records"
)

// maxWarnings bounds them: a stolen token of a node can report thousands.
const maxWarnings = 5

// forwardWarnings names the chains of others on nodes that drop what no rule of theirs accepts, each with its nodes.
// Packets that nodes send to verify a path do not pass such chains, packets of pods do. Whether these are accepted is
// not known, so the state does not depend on it.
func forwardWarnings(reports []records.Node) []string {
	chains := make(map[string][]string)
	for _, n := range reports {
		for _, d := range n.ForwardDrops {
			chains[d.String()] = append(chains[d.String()], n.Name)
		}
	}
	var all []string
	names := slices.Sorted(maps.Keys(chains))
	for _, chain := range names[:min(maxWarnings, len(names))] {
		nodes := chains[chain]
		slices.Sort(nodes)
		const shown = 3
		text := strings.Join(nodes[:min(shown, len(nodes))], ", ")
		if more := len(nodes) - shown; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, fmt.Sprintf(
			"%s of node %s drops packets of pods that none of its rules accepts; verification does not pass it", chain, text))
	}
	if more := len(names) - maxWarnings; more > 0 {
		all = append(all, fmt.Sprintf("%d more chains of nodes drop packets of pods", more))
	}
	return all
}
