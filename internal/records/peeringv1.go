package records

import "net/netip"

// peeringV1 is a peering's record of schema version 1: one gateway a side, and one tunnel.
type peeringV1 struct {
	Version        int        `json:"version"`
	Name           string     `json:"name"`
	Role           Role       `json:"role"`
	Peer           peerV1     `json:"peer"`
	Local          Local      `json:"local,omitzero"`
	Tunnel         tunnelV1   `json:"tunnel"`
	OverlayID      uint32     `json:"overlayID"`
	GatewayAddress netip.Addr `json:"gatewayAddress"`
	MTU            int        `json:"mtu"`
	ClampMSS       bool       `json:"clampMSS"`
	Exposed        []Exposed  `json:"exposed,omitempty"`
}

type peerV1 struct {
	ClusterID    string    `json:"clusterID"`
	Name         string    `json:"name"`
	PodCIDRs     []Mapping `json:"podCIDRs"`
	ExternalCIDR Mapping   `json:"externalCIDR"`
	PublicKey    string    `json:"publicKey"`
}

type tunnelV1 struct {
	Implementation Implementation `json:"implementation"`
	Address        netip.Prefix   `json:"address"`
	PeerAddress    netip.Addr     `json:"peerAddress"`
	ListenPort     uint16         `json:"listenPort"`
	Endpoints      []string       `json:"endpoints,omitempty"`
}

// readVersion1 reads a record of version 1. Its version stays, so that it differs from what is wanted and is written anew.
func (p *Peering) readVersion1(document []byte) (unknown []string, err error) {
	var v peeringV1
	if unknown, err = readJSON(document, &v); err != nil {
		return nil, err
	}
	*p = Peering{
		Version: v.Version, Name: v.Name, Role: v.Role, Local: v.Local,
		Peer: Peer{ClusterID: v.Peer.ClusterID, Name: v.Peer.Name, PodCIDRs: v.Peer.PodCIDRs, ExternalCIDR: v.Peer.ExternalCIDR},
		Gateways: []LocalGateway{{
			OverlayID: v.OverlayID, Address: v.GatewayAddress,
			Tunnels: []Tunnel{{
				PublicKey: v.Peer.PublicKey, Address: v.Tunnel.Address, PeerAddress: v.Tunnel.PeerAddress,
				ListenPort: v.Tunnel.ListenPort, Endpoints: v.Tunnel.Endpoints,
			}},
		}},
		Implementation: v.Tunnel.Implementation, MTU: v.MTU, ClampMSS: v.ClampMSS, Exposed: v.Exposed,
	}
	return unknown, nil
}
