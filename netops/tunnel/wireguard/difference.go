package wireguard

import (
	"net"
	"net/netip"
	"slices"

	"go4.org/netipx"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// difference returns the minimal change from have to want, and whether it is not empty. An invalid endpoint keeps that
// of the device, as does a listen port of zero.
func difference(have wgtypes.Device, want Config, endpoint netip.AddrPort) (wgtypes.Config, bool) {
	diff := ownDifference(have, want)
	if peer, known := findPeer(have, want.PublicKey); known && endpoint.IsValid() && endpointOf(peer) != endpoint {
		// A new peer sends a handshake immediately. The old one would continue with a session that may not exist at the
		// new endpoint, or wait for the timeout of an unanswered handshake.
		diff.ReplacePeers, diff.Peers = true, []wgtypes.PeerConfig{newPeer(want, endpoint)}
		return diff, true
	}
	known := want.Closed
	for _, peer := range have.Peers {
		if want.Closed || peer.PublicKey != want.PublicKey {
			diff.Peers = append(diff.Peers, wgtypes.PeerConfig{PublicKey: peer.PublicKey, Remove: true, UpdateOnly: true})
			continue
		}
		known = true
		if p, differs := peerDifference(peer, want); differs {
			diff.Peers = append(diff.Peers, p)
		}
	}
	if !known {
		diff.Peers = append(diff.Peers, newPeer(want, endpoint))
	}
	return diff, diff.PrivateKey != nil || diff.ListenPort != nil || diff.FirewallMark != nil || len(diff.Peers) > 0
}

// ownDifference returns the change of what does not depend on the peer.
func ownDifference(have wgtypes.Device, want Config) (diff wgtypes.Config) {
	if key := want.PrivateKey.reveal(); have.PrivateKey != key {
		diff.PrivateKey = &key
	}
	if port := int(want.ListenPort); port != 0 && have.ListenPort != port {
		diff.ListenPort = &port
	}
	if mark := int(want.Mark); have.FirewallMark != mark {
		diff.FirewallMark = &mark
	}
	return diff
}

func peerDifference(have wgtypes.Peer, want Config) (wgtypes.PeerConfig, bool) {
	diff := wgtypes.PeerConfig{PublicKey: have.PublicKey, UpdateOnly: true}
	differs := false
	if key := want.PresharedKey.reveal(); have.PresharedKey != key {
		diff.PresharedKey, differs = &key, true
	}
	if interval := want.KeepAlive; have.PersistentKeepaliveInterval != interval {
		diff.PersistentKeepaliveInterval, differs = &interval, true
	}
	missing, surplus := rangeDifference(have.AllowedIPs, want.AllowedIPs)
	switch {
	case surplus:
		diff.AllowedIPs, diff.ReplaceAllowedIPs, differs = ipNets(want.AllowedIPs), true, true
	case len(missing) > 0:
		// Replacement would leave a moment without any range, addition does not.
		diff.AllowedIPs, differs = ipNets(missing), true
	}
	return diff, differs
}

// newPeer returns the configuration of a peer that the device does not have.
func newPeer(want Config, endpoint netip.AddrPort) wgtypes.PeerConfig {
	psk, interval := want.PresharedKey.reveal(), want.KeepAlive
	peer := wgtypes.PeerConfig{
		PublicKey:                   want.PublicKey,
		PresharedKey:                &psk,
		PersistentKeepaliveInterval: &interval,
		ReplaceAllowedIPs:           true,
		AllowedIPs:                  ipNets(want.AllowedIPs),
	}
	if endpoint.IsValid() {
		peer.Endpoint = net.UDPAddrFromAddrPort(endpoint)
	}
	return peer
}

// rangeDifference returns the desired ranges that are missing, and whether there are surplus ones.
func rangeDifference(have []net.IPNet, want []netip.Prefix) (missing []netip.Prefix, surplus bool) {
	present := make([]netip.Prefix, len(have))
	for i, n := range have {
		present[i] = prefixOf(n)
		surplus = surplus || !slices.Contains(want, present[i])
	}
	missing = slices.DeleteFunc(slices.Clone(want), func(p netip.Prefix) bool { return slices.Contains(present, p) })
	return missing, surplus
}

// findPeer returns the peer with that key.
func findPeer(device wgtypes.Device, key wgtypes.Key) (wgtypes.Peer, bool) {
	i := slices.IndexFunc(device.Peers, func(p wgtypes.Peer) bool { return p.PublicKey == key })
	if i < 0 {
		return wgtypes.Peer{}, false
	}
	return device.Peers[i], true
}

// endpointOf returns the endpoint of the peer, IPv4 in its own form; the zero value for none.
func endpointOf(peer wgtypes.Peer) netip.AddrPort {
	if peer.Endpoint == nil {
		return netip.AddrPort{}
	}
	return unmap(peer.Endpoint.AddrPort())
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func prefixOf(n net.IPNet) netip.Prefix {
	p, _ := netipx.FromStdIPNet(&n)
	return p
}

func ipNets(prefixes []netip.Prefix) []net.IPNet {
	out := make([]net.IPNet, len(prefixes))
	for i, p := range prefixes {
		out[i] = *netipx.PrefixIPNet(p)
	}
	return out
}
