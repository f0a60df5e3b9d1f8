package records

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
)

// Bounds of what a record may hold. They keep one object well under the API server's 1 MiB.
const (
	maxNameLength = 40 // leaves room for prefixes and suffixes within a label's 63 characters
	maxVNI        = 1<<24 - 1
	minMTU        = 576 // RFC 791: every IPv4 host accepts such datagrams
	maxMTU        = 65535
	maxCIDRs      = 64
	maxEndpoints  = 64
	wireGuardKey  = 32 // bytes
	maxPeerNodes  = 16
	maxObjectName = 253
)

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// printable is what can be shown on a terminal as it is.
var printable = regexp.MustCompile(`^[ -~]{1,400}$`)

// ValidateName reports why a cluster's or peering's name cannot be used in names of objects.
func ValidateName(name string) error {
	return unless(len(name) <= maxNameLength && dnsLabel.MatchString(name),
		"name %q: want at most %d of a-z, 0-9 and -, beginning and ending with a letter or digit", name, maxNameLength)
}

// unless returns an error where something does not hold.
func unless(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// each joins the errors of all elements.
func each[T any](all []T, check func(T) error) error {
	errs := make([]error, len(all))
	for i, one := range all {
		errs[i] = check(one)
	}
	return errors.Join(errs...)
}

func (f Fabric) validate() error {
	sameLength := !f.ExternalCIDR.IsValid() || !f.InternalCIDR.IsValid() || f.ExternalCIDR.Bits() == f.InternalCIDR.Bits()
	return errors.Join(
		ValidateName(f.Name),
		each(slices.Concat([]netip.Prefix{f.ExternalCIDR, f.InternalCIDR}, f.PodCIDRs, f.ServiceCIDRs, f.NodeNetworks), validateCIDR),
		unless(f.ClusterID != "", "clusterID: missing"),
		unless(sameLength, "external CIDR %s and internal CIDR %s: nodes are mapped 1:1, so both must have the same length",
			f.ExternalCIDR, f.InternalCIDR),
		unless(slices.Contains([]OverlayKind{"", Geneve, VXLAN}, f.Overlay.Kind), "overlay kind %q: want geneve or vxlan", f.Overlay.Kind),
		validateKnownMTU(f.MTU),
	)
}

func (p Peering) validate() error {
	return errors.Join(
		ValidateName(p.Name), p.Peer.validate(), p.Local.validate(), p.Tunnel.validate(), validateMTU(p.MTU), validateExposed(p.Exposed),
		unless(p.Role == Server || p.Role == Client, "role %q: want server or client", p.Role),
		unless(p.OverlayID != 0 && p.OverlayID <= maxVNI, "overlay id %d: want 1 to %d", p.OverlayID, maxVNI),
		unless(p.GatewayAddress.Is4(), "gateway address %s: want an IPv4 address", p.GatewayAddress),
		unless(p.Role != Client || len(p.Tunnel.Endpoints) > 0, "tunnel: a client needs an endpoint of the server"),
	)
}

func validateExposed(exposed []Exposed) error {
	if len(exposed) > MaxExposed {
		return fmt.Errorf("%d exposed hosts: want at most %d", len(exposed), MaxExposed)
	}
	var err error
	hosts, addresses := make(map[netip.Addr]bool), make(map[netip.Addr]bool)
	for _, e := range exposed {
		switch {
		case !e.Host.Is4() || !e.Address.Is4():
			err = errors.Join(err, fmt.Errorf("exposed host %s as %s: want IPv4 addresses", e.Host, e.Address))
		case hosts[e.Host] || addresses[e.Address]:
			err = errors.Join(err, fmt.Errorf("exposed host %s as %s: one of them is there already", e.Host, e.Address))
		}
		hosts[e.Host], addresses[e.Address] = true, true
	}
	return err
}

func (p Peer) validate() error {
	key, err := base64.StdEncoding.DecodeString(p.PublicKey)
	return errors.Join(
		ValidateName(p.Name),
		unless(p.ClusterID != "", "peer: cluster ID missing"),
		unless(len(p.PodCIDRs) > 0 && len(p.PodCIDRs) <= maxCIDRs, "peer: %d pod CIDRs: want 1 to %d", len(p.PodCIDRs), maxCIDRs),
		each(p.CIDRs(), validateMapping),
		unless(err == nil && len(key) == wireGuardKey, "peer: public key is no WireGuard key"),
	)
}

func (l Local) validate() error {
	switch {
	case !l.Known() && l.ExternalCIDR != (Mapping{}):
		return errors.New("local: an external CIDR, but no pod CIDRs")
	case len(l.PodCIDRs) > maxCIDRs:
		return fmt.Errorf("local: %d pod CIDRs: want at most %d", len(l.PodCIDRs), maxCIDRs)
	}
	return each(l.CIDRs(), validateMapping)
}

func validateMapping(m Mapping) error {
	return errors.Join(validateCIDR(m.Real), validateCIDR(m.Seen),
		unless(m.Real.Bits() == m.Seen.Bits(), "mapping %s to %s: lengths differ", m.Real, m.Seen))
}

func (t Tunnel) validate() error {
	pair := t.Address.IsValid() && t.Address.Addr().Is4() && t.PeerAddress.Is4() && t.Address.Contains(t.PeerAddress)
	return errors.Join(
		t.Implementation.Validate(),
		unless(pair, "tunnel addresses %s and %s: want two IPv4 addresses of one range", t.Address, t.PeerAddress),
		unless(t.ListenPort != 0, "tunnel: listen port missing"),
		unless(len(t.Endpoints) <= maxEndpoints, "tunnel: %d endpoints: want at most %d", len(t.Endpoints), maxEndpoints),
		each(t.Endpoints, func(endpoint string) error {
			_, port, err := net.SplitHostPort(endpoint)
			return unless(err == nil && port != "0", "endpoint %q: want host:port", endpoint)
		}),
	)
}

func (g Gateway) validate() error {
	return errors.Join(
		unless(g.PodIP.Is4(), "gateway pod IP %s: want an IPv4 address", g.PodIP),
		unless(len(g.Pod) <= maxObjectName && len(g.Node) <= maxObjectName, "gateway pod or node: want a name of at most %d characters", maxObjectName),
		unless(len(g.PeerNodes) <= maxPeerNodes, "%d peer nodes: want at most %d", len(g.PeerNodes), maxPeerNodes),
	)
}

func (s Status) validate() error {
	return errors.Join(
		unless(s.Loss >= 0 && s.Loss <= 1, "loss %v: want 0 to 1", s.Loss), s.Path.validate(), s.Drift.validate(),
		each(s.Nodes, func(n NodeStatus) error {
			return errors.Join(n.Path.validate(),
				unless(n.Refused == "" || printable.MatchString(n.Refused), "node %q: reason %q: want printable characters", n.Name, n.Refused))
		}),
	)
}

func (p PathSize) validate() error { return validateKnownMTU(p.MTU) }

func (n Node) validate() error {
	err := errors.Join(
		unless(n.Name != "", "node name: missing"), n.Drift.validate(), each(n.PodCIDRs, validateCIDR),
		each(n.ForwardDrops, func(d ForwardDrop) error {
			return unless(printable.MatchString(d.Chain), "chain %q: want printable characters", d.Chain)
		}),
		unless(len(n.Refused) <= MaxRefused, "%d refused peerings: want at most %d", len(n.Refused), MaxRefused),
	)
	for peering, reason := range n.Refused {
		err = errors.Join(err, ValidateName(peering),
			unless(printable.MatchString(reason), "refused peering %q: reason %q: want printable characters", peering, reason))
	}
	return err
}

func validateCIDR(p netip.Prefix) error {
	return unless(p.IsValid() && p.Addr().Is4() && p == p.Masked(), "CIDR %s: want an IPv4 range without host bits", p)
}

// validateKnownMTU accepts 0, which is not known.
func validateKnownMTU(mtu int) error {
	if mtu == 0 {
		return nil
	}
	return validateMTU(mtu)
}

func validateMTU(mtu int) error {
	return unless(mtu >= minMTU && mtu <= maxMTU, "MTU %d: want %d to %d bytes", mtu, minMTU, maxMTU)
}
