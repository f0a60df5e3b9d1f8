package records

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"

	"liqonet.io/liqonet/internal/setting"
)

func (p Peering) validate() error {
	return errors.Join(
		ValidateName(p.Name), unless(p.Number >= 1 && p.Number <= maxNumber, "number %d: want 1 to %d", p.Number, maxNumber), p.Peer.validate(), p.Local.validate(), p.validateGateways(), validateMTU(p.MTU), validateExposed(p.Exposed), p.Settings.Validate(),
		unless(p.Role == Server || p.Role == Client, "role %q: want server or client", p.Role),
		unless(p.Role != Server || !p.Settings.Plain() || len(p.Peer.NodeNetworks) > 0, "peer: no node networks, from which packets without encryption are accepted"),
	)
}

// validateGateways checks each gateway and tunnel, and that the ports of a gateway are unique.
func (p Peering) validateGateways() error {
	if len(p.Gateways) == 0 || len(p.Gateways) > MaxGateways {
		return fmt.Errorf("%d gateways: want 1 to %d", len(p.Gateways), MaxGateways)
	}
	var errs []error
	for i, g := range p.Gateways {
		err := errors.Join(g.validate(p.Role),
			unless(len(g.Tunnels) == len(p.Gateways[0].Tunnels), "%d tunnels, and %d of gateway 1", len(g.Tunnels), len(p.Gateways[0].Tunnels)),
		)
		ports := map[uint16]bool{}
		for _, t := range g.Tunnels[:min(len(g.Tunnels), MaxGateways)] {
			err = errors.Join(err, unless(p.Role == Client || !ports[t.ListenPort], "listen port %d is there twice", t.ListenPort))
			ports[t.ListenPort] = true
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("gateway %d: %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}

func (g LocalGateway) validate(role Role) error {
	return errors.Join(
		unless(len(g.Tunnels) > 0 && len(g.Tunnels) <= MaxGateways, "%d tunnels: want 1 to %d", len(g.Tunnels), MaxGateways),
		each(g.Tunnels, func(t Tunnel) error {
			return errors.Join(t.validate(), unless(role != Client || len(t.Endpoints)+len(t.WebSocket) > 0, "tunnel: a client needs an endpoint of the server"))
		}),
	)
}

func (t Tunnel) validate() error {
	return errors.Join(
		t.Driver.WireGuard.Validate(),
		unless(t.ListenPort != 0, "tunnel: listen port missing"),
		unless(len(t.Endpoints) <= maxEndpoints, "tunnel: %d endpoints: want at most %d", len(t.Endpoints), maxEndpoints),
		each(t.Endpoints, validateEndpoint), validateWebSockets(t.WebSocket),
	)
}

func validateEndpoint(endpoint string) error {
	if err := setting.HostPort(endpoint); err != nil {
		return fmt.Errorf("endpoint %q: %w", endpoint, err)
	}
	return nil
}

// webSocketURL matches the URLs at which a client reaches a server by WebSocket, but for their host.
var webSocketURL = regexp.MustCompile(`^wss://([^/?#@]+:[1-9][0-9]{0,4})/[A-Za-z0-9._/-]{0,199}$`)

func validateWebSocket(url string) error {
	parts := webSocketURL.FindStringSubmatch(url)
	if parts == nil {
		return fmt.Errorf("WebSocket %q: want wss://HOST:PORT/PATH", url)
	}
	if err := setting.HostPort(parts[1]); err != nil {
		return fmt.Errorf("WebSocket %q: %w", url, err)
	}
	return nil
}

// validateWebSockets checks a list of URLs.
func validateWebSockets(urls []string) error {
	return errors.Join(unless(len(urls) <= maxEndpoints, "%d URLs for WebSocket: want at most %d", len(urls), maxEndpoints), each(urls, validateWebSocket))
}

func (p Peer) validate() error {
	return errors.Join(
		ValidateName(p.Name),
		unless(p.ClusterID != "", "peer: cluster ID missing"),
		unless(len(p.PodCIDRs) > 0 && len(p.PodCIDRs) <= maxCIDRs, "peer: %d pod CIDRs: want 1 to %d", len(p.PodCIDRs), maxCIDRs),
		each(p.NodeNetworks, validateCIDR),
		cmp.Or(each(p.CIDRs(), validateMapping), validateFamilies("peer: external CIDRs", p.ExternalCIDRs), validateHalved(p.ExternalCIDR().Seen)),
	)
}

func validateExposed(exposed []Exposed) error {
	if len(exposed) > MaxExposed {
		return fmt.Errorf("%d exposed hosts: want at most %d", len(exposed), MaxExposed)
	}
	hosts, addresses := make(map[netip.Addr]bool), make(map[netip.Addr]bool)
	return each(exposed, func(e Exposed) error {
		known := hosts[e.Host] || addresses[e.Address]
		hosts[e.Host], addresses[e.Address] = true, true
		return errors.Join(unless(e.Host.Is4() && e.Address.Is4(), "exposed host %s as %s: want IPv4 addresses", e.Host, e.Address),
			unless(!known, "exposed host %s as %s: one of them is there already", e.Host, e.Address))
	})
}
