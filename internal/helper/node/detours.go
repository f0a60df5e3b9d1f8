//go:build linux

package node

import (
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
)

// detours adds to the refused peerings of a view those whose packets foreign rules or routes divert. Packets that
// verify the path go from the node itself to nodes of the peer, and may not match these rules. A change of such a rule
// or route triggers a pass.
func (l *loop) detours(v view, applied []string) error {
	var names []string
	var crossings []kernel.PeerTraffic
	for _, p := range v.Peerings {
		c := kernel.PeerTraffic{Peer: p.Seen(), Pods: v.pods.all}
		for _, id := range p.GatewayIDs() {
			if v.located(id) {
				c.Links = append(c.Links, netops.NodeLink(p.OverlayID(id.Number)))
			}
		}
		if len(c.Links) > 0 && slices.Contains(applied, p.Name) { // otherwise they are held back
			names, crossings = append(names, p.Name), append(crossings, c)
		}
	}
	found, err := l.Kernel.Detours(crossings)
	if err != nil {
		return fmt.Errorf("look for rules and routes of others: %w", err)
	}
	for i, name := range names {
		if found[i] != "" && v.refused[name] == "" && len(v.refused) < records.MaxRefused {
			text := netops.Printable(found[i])
			v.refused[name] = text[:min(len(text), records.MaxReason)]
		}
	}
	return nil
}
