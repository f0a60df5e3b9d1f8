package records

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
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
	if len(name) > maxNameLength || !dnsLabel.MatchString(name) {
		return fmt.Errorf("name %q: want at most %d of a-z, 0-9 and -, beginning and ending with a letter or digit", name, maxNameLength)
	}
	return nil
}

func (f Fabric) validate() error {
	err := ValidateName(f.Name)
	for _, p := range append(append(append([]netip.Prefix{f.ExternalCIDR, f.InternalCIDR}, f.PodCIDRs...), f.ServiceCIDRs...), f.NodeNetworks...) {
		err = errors.Join(err, validateCIDR(p))
	}
	if f.ClusterID == "" {
		err = errors.Join(err, errors.New("clusterID: missing"))
	}
	if f.ExternalCIDR.IsValid() && f.InternalCIDR.IsValid() && f.ExternalCIDR.Bits() != f.InternalCIDR.Bits() {
		err = errors.Join(err, fmt.Errorf("external CIDR %s and internal CIDR %s: nodes are mapped 1:1, so both must have the same length", f.ExternalCIDR, f.InternalCIDR))
	}
	switch f.Overlay.Kind {
	case "", Geneve, VXLAN:
	default:
		err = errors.Join(err, fmt.Errorf("overlay kind %q: want geneve or vxlan", f.Overlay.Kind))
	}
	if f.MTU != 0 {
		err = errors.Join(err, validateMTU(f.MTU))
	}
	return err
}

func (p Peering) validate() error {
	err := errors.Join(ValidateName(p.Name), p.Peer.validate(), p.Local.validate(), p.Tunnel.validate(), validateMTU(p.MTU), validateExposed(p.Exposed))
	if p.Role != Server && p.Role != Client {
		err = errors.Join(err, fmt.Errorf("role %q: want server or client", p.Role))
	}
	if p.OverlayID == 0 || p.OverlayID > maxVNI {
		err = errors.Join(err, fmt.Errorf("overlay id %d: want 1 to %d", p.OverlayID, maxVNI))
	}
	if !p.GatewayAddress.Is4() {
		err = errors.Join(err, fmt.Errorf("gateway address %s: want an IPv4 address", p.GatewayAddress))
	}
	if p.Role == Client && len(p.Tunnel.Endpoints) == 0 {
		err = errors.Join(err, errors.New("tunnel: a client needs an endpoint of the server"))
	}
	return err
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
	err := ValidateName(p.Name)
	if p.ClusterID == "" {
		err = errors.Join(err, errors.New("peer: cluster ID missing"))
	}
	if len(p.PodCIDRs) == 0 || len(p.PodCIDRs) > maxCIDRs {
		err = errors.Join(err, fmt.Errorf("peer: %d pod CIDRs: want 1 to %d", len(p.PodCIDRs), maxCIDRs))
	}
	err = errors.Join(err, validateMappings(p.CIDRs()))
	if key, e := base64.StdEncoding.DecodeString(p.PublicKey); e != nil || len(key) != wireGuardKey {
		err = errors.Join(err, errors.New("peer: public key is no WireGuard key"))
	}
	return err
}

func (l Local) validate() error {
	switch {
	case !l.Known() && l.ExternalCIDR != (Mapping{}):
		return errors.New("local: an external CIDR, but no pod CIDRs")
	case len(l.PodCIDRs) > maxCIDRs:
		return fmt.Errorf("local: %d pod CIDRs: want at most %d", len(l.PodCIDRs), maxCIDRs)
	}
	return validateMappings(l.CIDRs())
}

func validateMappings(mappings []Mapping) error {
	var err error
	for _, m := range mappings {
		err = errors.Join(err, validateCIDR(m.Real), validateCIDR(m.Seen))
		if m.Real.Bits() != m.Seen.Bits() {
			err = errors.Join(err, fmt.Errorf("mapping %s to %s: lengths differ", m.Real, m.Seen))
		}
	}
	return err
}

func (t Tunnel) validate() error {
	var err error
	switch t.Implementation {
	case Auto, Kernel, Userspace:
	default:
		err = fmt.Errorf("WireGuard implementation %q: want auto, kernel or userspace", t.Implementation)
	}
	if !t.Address.IsValid() || !t.Address.Addr().Is4() || !t.PeerAddress.Is4() || !t.Address.Contains(t.PeerAddress) {
		err = errors.Join(err, fmt.Errorf("tunnel addresses %s and %s: want two IPv4 addresses of one range", t.Address, t.PeerAddress))
	}
	if t.ListenPort == 0 {
		err = errors.Join(err, errors.New("tunnel: listen port missing"))
	}
	if len(t.Endpoints) > maxEndpoints {
		err = errors.Join(err, fmt.Errorf("tunnel: %d endpoints: want at most %d", len(t.Endpoints), maxEndpoints))
	}
	for _, e := range t.Endpoints {
		if _, port, e2 := net.SplitHostPort(e); e2 != nil || port == "0" {
			err = errors.Join(err, fmt.Errorf("endpoint %q: want host:port", e))
		}
	}
	return err
}

func (g Gateway) validate() error {
	if !g.PodIP.Is4() {
		return fmt.Errorf("gateway pod IP %s: want an IPv4 address", g.PodIP)
	}
	if len(g.Pod) > maxObjectName || len(g.Node) > maxObjectName {
		return fmt.Errorf("gateway pod or node: want a name of at most %d characters", maxObjectName)
	}
	if len(g.PeerNodes) > maxPeerNodes {
		return fmt.Errorf("%d peer nodes: want at most %d", len(g.PeerNodes), maxPeerNodes)
	}
	return nil
}

func (s Status) validate() error {
	if s.Loss < 0 || s.Loss > 1 {
		return fmt.Errorf("loss %v: want 0 to 1", s.Loss)
	}
	err := errors.Join(s.Path.validate(), s.Drift.validate())
	for _, n := range s.Nodes {
		err = errors.Join(err, n.Path.validate())
		if n.Refused != "" && !printable.MatchString(n.Refused) {
			err = errors.Join(err, fmt.Errorf("node %q: reason %q: want printable characters", n.Name, n.Refused))
		}
	}
	return err
}

func (p PathSize) validate() error {
	if p.MTU == 0 {
		return nil
	}
	return validateMTU(p.MTU)
}

func (n Node) validate() error {
	if n.Name == "" {
		return errors.New("node name: missing")
	}
	err := n.Drift.validate()
	for _, d := range n.ForwardDrops {
		if !printable.MatchString(d.Chain) {
			err = errors.Join(err, fmt.Errorf("chain %q: want printable characters", d.Chain))
		}
	}
	for _, p := range n.PodCIDRs {
		err = errors.Join(err, validateCIDR(p))
	}
	if len(n.Refused) > MaxRefused {
		err = errors.Join(err, fmt.Errorf("%d refused peerings: want at most %d", len(n.Refused), MaxRefused))
	}
	for peering, reason := range n.Refused {
		if e := ValidateName(peering); e != nil || !printable.MatchString(reason) {
			err = errors.Join(err, e, fmt.Errorf("refused peering %q: reason %q: want printable characters", peering, reason))
		}
	}
	return err
}

func validateCIDR(p netip.Prefix) error {
	if !p.IsValid() || !p.Addr().Is4() || p != p.Masked() {
		return fmt.Errorf("CIDR %s: want an IPv4 range without host bits", p)
	}
	return nil
}

func validateMTU(mtu int) error {
	if mtu < minMTU || mtu > maxMTU {
		return fmt.Errorf("MTU %d: want %d to %d bytes", mtu, minMTU, maxMTU)
	}
	return nil
}
