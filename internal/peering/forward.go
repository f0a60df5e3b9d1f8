package peering

import (
	"fmt"
	"strings"
)

// checkForward looks for nodes whose firewall drops what they forward unless a rule of its own accepts it, as iptables'
// policy DROP of Docker and ufw does: no rule elsewhere can undo that. It is an error if refuse is set, else a warning.
// Rules that such a firewall has for liqonet's packets already are not recognised.
func (s *site) checkForward(refuse bool) error {
	if s.fabric.AllowForward {
		return nil // the nodes' helpers add the rules
	}
	var nodes []string
	for _, n := range s.reporting() {
		var chains []string
		for _, d := range n.ForwardDrops {
			chains = append(chains, d.String())
		}
		if len(chains) > 0 {
			nodes = append(nodes, fmt.Sprintf("%s (%s)", n.Name, strings.Join(chains, ", ")))
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return s.object(refuse, "firewalls drop what nodes forward: "+strings.Join(nodes, ", "),
		"let the node helpers add rules with --allow-forward; or have these chains accept packets from and to links lqn-*, "+
			"then connect with --skip-validation")
}
