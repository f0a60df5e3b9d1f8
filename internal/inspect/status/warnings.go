package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/records"
)

// maxWarnings bounds the warnings: with a stolen token of a node, an attacker can report thousands of chains.
const maxWarnings = 5

// forwardWarnings lists the foreign chains on nodes that drop packets by default, each with its nodes. Such chains see
// packets of pods but not the packets by which nodes verify a path. Whether their rules accept packets of pods is
// unknown, so the state does not depend on them.
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
			"%s of node %s drops pod traffic that its rules do not accept, which status cannot see: use connect --allow-forward --update", chain, text))
	}
	if more := len(names) - maxWarnings; more > 0 {
		all = append(all, fmt.Sprintf("%d more chains of nodes drop packets of pods", more))
	}
	return all
}
