package desired

import (
	"fmt"
	"net"
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/setting"
)

// checkPlain rejects that a peer decides for tunnels without encryption, or for packets in them to public addresses:
// the user of each cluster wants that, or has wanted it before.
func (h Half) checkPlain(decided records.GatewaySettings) error {
	var recorded records.GatewaySettings
	if h.Recorded != nil {
		recorded = h.Recorded.Settings
	}
	own := setting.Over(h.Wanted.Settings, recorded).Complete()
	switch {
	case !decided.Plain():
		return nil
	case *own.Tunnel != records.PlainTunnel || !*own.Unencrypted:
		return hint.With(fmt.Errorf("cluster %q has decided that the tunnels are not encrypted", h.Peer.Cluster.Name),
			"add --tunnel plain --unencrypted, or --tunnel wireguard --update")
	case *decided.Complete().AllowPublic && !*own.AllowPublic:
		return hint.With(fmt.Errorf("cluster %q has decided that packets without encryption go to public addresses", h.Peer.Cluster.Name),
			"add --allow-public, or --allow-public=false --update")
	}
	return nil
}

// CheckPublic rejects what packets without encryption must not go to: public addresses, and names, which can be those
// of public addresses. A client's packets go to its endpoints, a server's to the networks of the peer's nodes.
func (h Half) CheckPublic() error {
	s := h.Settings.Complete()
	switch {
	case !s.Plain():
		return nil
	case h.Role == records.Server:
		return h.checkSources(*s.AllowPublic)
	case *s.AllowPublic:
		return nil
	}
	for _, endpoint := range h.Record().Endpoints() {
		host, _, err := net.SplitHostPort(endpoint)
		if err != nil {
			continue // the record is refused
		}
		if a, err := netip.ParseAddr(host); err != nil || cidr.Public(a) {
			return public("endpoint " + host)
		}
	}
	return nil
}

// checkSources checks the networks from which a server accepts packets.
func (h Half) checkSources(allowed bool) error {
	networks := h.Peer.Ranges.NodeNetworks
	if len(networks) == 0 {
		return hint.With(fmt.Errorf("offer of cluster %q: no node networks, from which packets without encryption are accepted", h.Peer.Cluster.Name),
			"add --remote-node-network, or --node-network")
	}
	for _, n := range networks {
		if !allowed && !cidr.Private(n) {
			return public(fmt.Sprintf("node network %s of cluster %q", n, h.Peer.Cluster.Name))
		}
	}
	return nil
}

func public(what string) error {
	return hint.With(fmt.Errorf("%s is public: packets that are not encrypted must not go there", what),
		"add --allow-public if they may; or --tunnel wireguard")
}
