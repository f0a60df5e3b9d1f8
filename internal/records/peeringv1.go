package records

import "net/netip"

// peeringV1 is a peering's record of schema version 1: one gateway a side, and one tunnel. What version 2 has in other places:
type peeringV1 struct {
	Peering
	Peer struct {
		Peer
		PublicKey string `json:"publicKey"`
	} `json:"peer"`
	Tunnel struct {
		Tunnel
		Implementation Implementation `json:"implementation"`
	} `json:"tunnel"`
	OverlayID      uint32     `json:"overlayID"`
	GatewayAddress netip.Addr `json:"gatewayAddress"`
}

// readVersion1 reads a record of version 1. Its version stays, so that it differs from what is wanted and is written anew.
func (p *Peering) readVersion1(document []byte) (unknown []string, err error) {
	var v peeringV1
	if unknown, err = readJSON(document, &v); err != nil {
		return nil, err
	}
	*p = v.Peering
	p.Peer, p.Implementation, p.GatewayMode = v.Peer.Peer, v.Tunnel.Implementation, ""
	v.Tunnel.PublicKey = v.Peer.PublicKey
	p.Gateways = []LocalGateway{{OverlayID: v.OverlayID, Address: v.GatewayAddress, Tunnels: []Tunnel{v.Tunnel.Tunnel}}}
	return unknown, nil
}
