package records

import (
	"errors"
	"fmt"
	"net/netip"
)

// Offer is all that one cluster of a peering knows of the other while a command runs. Each half of the command computes
// it from its own cluster and the peer's latest offer. Fields that the offering half does not know yet are zero. It has
// no secret in the clear: see Sealed.
type Offer struct {
	Version int    `json:"version"`
	Cluster Party  `json:"cluster"`
	Ranges  Ranges `json:"ranges,omitzero"`
	// Assigned are the peer's ranges as the offering cluster reaches them.
	Assigned Local `json:"assigned,omitzero"`
	// Role is that of the offering cluster.
	Role Role `json:"role,omitempty"`
	// Settings are the server's choice; the client's cluster takes them.
	Settings *GatewaySettings `json:"settings,omitempty"`
	// OnePort means that the user has set one port of the server, so each cluster has one gateway by default.
	OnePort bool `json:"onePort,omitempty"`
	// Recorded has what the peering's record in the offering cluster says; nil: there is none.
	Recorded *Recorded        `json:"recorded,omitempty"`
	Hops     Hops             `json:"hops,omitzero"`
	Gateways []OfferedGateway `json:"gateways,omitempty"` // in the order of their numbers
	// Seal is the public key with which the peer seals what only the offering half may read.
	Seal      []byte  `json:"seal,omitempty"`
	Preshared *Sealed `json:"preshared,omitempty"`
}

// Party is a cluster of a peering.
type Party struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Ranges are those of the offering cluster itself.
type Ranges struct {
	PodCIDRs      []netip.Prefix `json:"podCIDRs"`
	ExternalCIDRs []netip.Prefix `json:"externalCIDRs"`
	NodeNetworks  []netip.Prefix `json:"nodeNetworks,omitempty"` // endpoints of tunnels are in them
}

// Recorded is the part of a peering's record that concerns the peer.
type Recorded struct {
	Role     Role            `json:"role"`
	Settings GatewaySettings `json:"settings,omitzero"`
	MTU      int             `json:"mtu"`
	Gateways int             `json:"gateways"` // of the peer, that it names
	// Endpoints are those of a client's tunnels, by the number of its own gateway and of the peer's.
	Endpoints [][][]string `json:"endpoints,omitempty"`
	// WebSocket has the URLs in a client's record, by the number of the peer's gateway.
	WebSocket [][]string `json:"webSocket,omitempty"`
}

// WebSocketOf returns the URLs of a gateway of the server in a client's record; none for nil.
func (r *Recorded) WebSocketOf(gateway int) []string {
	if r == nil || gateway > len(r.WebSocket) {
		return nil
	}
	return r.WebSocket[gateway-1]
}

// EndpointsOf returns the endpoints of a tunnel in a client's record; none for nil.
func (r *Recorded) EndpointsOf(t TunnelID) []string {
	if r == nil || t.Client > len(r.Endpoints) || t.Server > len(r.Endpoints[t.Client-1]) {
		return nil
	}
	return r.Endpoints[t.Client-1][t.Server-1]
}

// Hops are the path MTUs that the offering cluster knows, in bytes; 0: not known.
type Hops struct {
	Links    int  `json:"links,omitempty"`    // of its nodes
	Overlay  int  `json:"overlay,omitempty"`  // from nodes to their gateway
	Tunnel   int  `json:"tunnel,omitempty"`   // between the gateways
	Complete bool `json:"complete,omitempty"` // every hop is measured
}

// OfferedGateway is a gateway of the offering cluster.
type OfferedGateway struct {
	Driver Driver `json:"tunnel,omitzero"`
	// Replaced is set while its pod runs with another key pair.
	Replaced bool `json:"replaced,omitempty"`
	// Endpoints are those of the server's tunnels, by the number of the peer's gateway.
	Endpoints [][]string `json:"endpoints,omitempty"`
	// WebSocket has the URLs of the server's gateway.
	WebSocket []string `json:"webSocket,omitempty"`
}

// Sealed is a preshared key that only the peer can read.
type Sealed struct {
	ID         string `json:"id"` // a hash of the key, which has 32 random bytes
	Ciphertext []byte `json:"ciphertext"`
}

// Bounds of an offer.
const (
	maxSeal       = 4 << 10 // bytes of keys and ciphertexts
	maxIdentifier = 128     // bytes of names and IDs
)

func (Offer) identity() Identity { return Identity{Component: ComponentOffer} }

func (o Offer) validate() error {
	return errors.Join(
		ValidateName(o.Cluster.Name),
		unless(o.Cluster.ID != "" && len(o.Cluster.ID) <= maxIdentifier && printable.MatchString(o.Cluster.ID), "offer: no ID of a cluster"),
		o.Ranges.validate(), o.Assigned.validate(), o.Recorded.validate(), validateHops(o.Hops),
		unless(o.Role == "" || o.Role == Server || o.Role == Client, "role %q: want server or client", o.Role),
		o.Settings.validateOffered(),
		unless(len(o.Gateways) <= MaxGateways, "offer: %d gateways: want at most %d", len(o.Gateways), MaxGateways),
		each(o.Gateways, OfferedGateway.validate),
		unless(len(o.Seal) <= maxSeal, "offer: seal of %d bytes", len(o.Seal)),
		o.Preshared.validate(),
	)
}

func (r Ranges) validate() error {
	if len(r.PodCIDRs) > maxCIDRs {
		return fmt.Errorf("offer: %d pod CIDRs: want at most %d", len(r.PodCIDRs), maxCIDRs)
	}
	if len(r.ExternalCIDRs) == 0 {
		return unless(len(r.PodCIDRs)+len(r.NodeNetworks) == 0, "offer: pod CIDRs, but no external CIDR")
	}
	return errors.Join(each(r.PodCIDRs, validateCIDR), each(r.NodeNetworks, validateCIDR), each(r.ExternalCIDRs, validateCIDR),
		validateFamilies("external CIDRs", r.ExternalCIDRs), validateHalved(first(r.ExternalCIDRs)))
}

func (r *Recorded) validate() error {
	if r == nil {
		return nil
	}
	errs := []error{
		unless(r.Role == Server || r.Role == Client, "offer: recorded role %q", r.Role), r.Settings.Validate(), validateMTU(r.MTU),
		unless(r.Gateways >= 1 && r.Gateways <= MaxGateways && len(r.Endpoints) <= MaxGateways && len(r.WebSocket) <= MaxGateways, "offer: %d recorded gateways", r.Gateways),
		each(r.WebSocket[:min(len(r.WebSocket), MaxGateways)], validateWebSockets),
	}
	for _, ofGateway := range r.Endpoints[:min(len(r.Endpoints), MaxGateways)] {
		errs = append(errs, validateOfferedEndpoints(ofGateway))
	}
	return errors.Join(errs...)
}

func (g OfferedGateway) validate() error {
	return errors.Join(validateOfferedDriver(g.Driver), validateOfferedEndpoints(g.Endpoints), validateWebSockets(g.WebSocket))
}

func (s *Sealed) validate() error {
	if s == nil {
		return nil
	}
	return unless(len(s.ID) <= maxIdentifier && len(s.Ciphertext) <= maxSeal, "offer: sealed key of %d bytes", len(s.Ciphertext))
}

func (s *GatewaySettings) validateOffered() error {
	if s == nil {
		return nil
	}
	return s.Validate()
}

// validateOfferedDriver accepts a driver that is not known yet.
func validateOfferedDriver(d Driver) error {
	if d == (Driver{}) {
		return nil
	}
	return d.WireGuard.Validate()
}

func validateOfferedEndpoints(all [][]string) error {
	return errors.Join(unless(len(all) <= MaxGateways, "offer: %d tunnels: want at most %d", len(all), MaxGateways),
		each(all, func(endpoints []string) error {
			return errors.Join(unless(len(endpoints) <= maxEndpoints, "offer: %d endpoints: want at most %d", len(endpoints), maxEndpoints),
				each(endpoints, validateEndpoint))
		}))
}

func validateHops(h Hops) error {
	return errors.Join(validateKnownMTU(h.Links), validateKnownMTU(h.Overlay), validateKnownMTU(h.Tunnel))
}
