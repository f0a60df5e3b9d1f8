package peering

import (
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
)

// overlayLinks are the nodes' links to which peers' packets go and from which they come, as iptables and nft name them.
const (
	iptablesLinks = "lqn-+"
	nftLinks      = "'lqn-*'"
)

// checkForward looks for nodes whose firewall drops what they forward unless a rule of its own accepts it, as iptables'
// policy DROP of Docker and ufw does: no rule elsewhere can undo that. It is an error if refuse is set, else a warning.
// Rules that such a firewall has for liqonet's packets already are not recognised.
func (s *site) checkForward(refuse bool) error {
	if s.fabric.AllowForward {
		return nil // the nodes' helpers add the rules
	}
	var nodes, commands []string
	for _, n := range s.reporting() {
		var chains []string
		for _, d := range n.ForwardDrops {
			chains = append(chains, d.String())
			commands = append(commands, acceptForward(d)...)
		}
		if len(chains) > 0 {
			nodes = append(nodes, fmt.Sprintf("%s (%s)", n.Name, strings.Join(chains, ", ")))
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	slices.Sort(commands)
	return s.object(refuse, "firewalls drop what nodes forward: "+strings.Join(nodes, ", "),
		"let the node helpers add rules with --allow-forward, or run on these nodes: "+
			strings.Join(slices.Compact(commands), "; ")+" and then connect with --skip-validation")
}

// acceptForward are the commands that let the overlay's packets pass a chain, in both directions.
func acceptForward(d records.ForwardDrop) []string {
	format := "iptables -I FORWARD %s " + iptablesLinks + " -j ACCEPT"
	from, to := "-i", "-o"
	if d.Chain != "ip filter FORWARD" {
		words := strings.Fields(d.Chain) // family, table, chain: as a node tells them
		for i, w := range words {
			words[i] = cluster.ShellWord(w)
		}
		format = "nft insert rule " + strings.ReplaceAll(strings.Join(words, " "), "%", "%%") + " %s " + nftLinks + " accept"
		from, to = "iifname", "oifname"
	}
	return []string{fmt.Sprintf(format, from), fmt.Sprintf(format, to)}
}
