package records

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"

	"liqonet.io/liqonet/internal/setting"
)

// MaxName is the length of the longest name of a cluster. It leaves room for prefixes and suffixes within a label's 63
// characters.
const MaxName = 40

// Limits for records. They keep an object well below the API server's 1 MiB.
const (
	maxNumber      = 1<<20 - 1 // of a peering, in the widest internal CIDR
	maxNode        = 1<<23 - 2 // number of a node there
	maxCIDRs       = 64
	maxEndpoints   = 64
	maxAnnotations = 64 // of a Service or Ingress
	maxPeerNodes   = 16
	maxObjectName  = 253
)

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// printable matches texts that can be shown on a terminal unescaped.
var printable = regexp.MustCompile(`^[ -~]{1,400}$`)

// short matches the names of pods, nodes, kernels and drivers in reports.
var short = regexp.MustCompile(`^[ -~]{0,253}$`)

// allShort rejects names that are too long for a terminal or contain escape sequences. The error does not quote them.
func allShort(what string, names ...string) error {
	return unless(!slices.ContainsFunc(names, func(n string) bool { return !short.MatchString(n) }),
		"%s: want at most %d printable characters", what, maxObjectName)
}

// ValidateName returns an error if a cluster's or peering's name cannot be used in names of objects.
func ValidateName(name string) error {
	return unless(len(name) <= MaxName && dnsLabel.MatchString(name),
		"name %q: want at most %d of a-z, 0-9 and -, beginning and ending with a letter or digit", name, MaxName)
}

// unless returns an error if a condition does not hold.
func unless(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// maxProblems limits the invalid list elements in an error: the errors of a long list would take much more memory than
// its text.
const maxProblems = 8

// each joins the errors of a list's elements, up to maxProblems.
func each[T any](all []T, check func(T) error) error {
	var errs []error
	for _, one := range all {
		if err := check(one); err != nil {
			errs = append(errs, err)
		}
		if len(errs) == maxProblems {
			break
		}
	}
	return errors.Join(errs...)
}

func (f Fabric) validate() error {
	external, internal := f.ExternalCIDR(), f.InternalCIDR()
	return errors.Join(
		ValidateName(f.Name),
		cmp.Or(
			each(slices.Concat(f.ExternalCIDRs, f.InternalCIDRs, f.PodCIDRs, f.ServiceCIDRs, f.NodeNetworks), validateCIDR),
			validateFamilies("external CIDRs", f.ExternalCIDRs), validateFamilies("internal CIDRs", f.InternalCIDRs),
			unless(external.Bits() == internal.Bits(), "external CIDR %s and internal CIDR %s: nodes are mapped 1:1, so both must have the same length",
				external, internal),
			validateHalved(external), validateHalved(internal),
		),
		unless(f.ClusterID != "", "clusterID: missing"),
		unless(slices.Contains([]OverlayKind{"", Geneve, VXLAN}, f.Overlay.Kind), "overlay kind %q: want geneve or vxlan", f.Overlay.Kind),
		validateKnownMTU(f.MTU),
	)
}

func (l Local) validate() error {
	switch {
	case !l.Known():
		return unless(len(l.ExternalCIDRs) == 0, "local: an external CIDR, but no pod CIDRs")
	case len(l.PodCIDRs) > maxCIDRs:
		return fmt.Errorf("local: %d pod CIDRs: want at most %d", len(l.PodCIDRs), maxCIDRs)
	}
	return cmp.Or(each(l.CIDRs(), validateMapping), validateFamilies("local: external CIDRs", l.ExternalCIDRs))
}

func validateMapping(m Mapping) error {
	return errors.Join(validateCIDR(m.Real), validateCIDR(m.Seen),
		unless(m.Real.Bits() == m.Seen.Bits(), "mapping %s to %s: lengths differ", m.Real, m.Seen))
}

func (g Gateway) validate() error {
	return errors.Join(
		unless(g.PodIP.Is4() && g.PodIP.IsGlobalUnicast(), "gateway pod IP %s: want an IPv4 address of a pod", g.PodIP),
		allShort("gateway pod or node", g.Pod, g.Node),
		unless(len(g.OtherEndpoints) < MaxGateways, "%d other endpoints: want at most %d", len(g.OtherEndpoints), MaxGateways-1),
		unless(len(g.PeerNodes) <= maxPeerNodes, "%d peer nodes: want at most %d", len(g.PeerNodes), maxPeerNodes),
		unless(len(g.PeerEndpoints) <= MaxPeerEndpoints, "%d peer endpoints: want at most %d", len(g.PeerEndpoints), MaxPeerEndpoints),
	)
}

func (s Status) validate() error {
	return errors.Join(
		s.TunnelStatus.validate(), s.Drift.validate(), allShort("pod, implementation or overlay", s.Pod, string(s.Implementation), string(s.Overlay)),
		unless(len(s.Tunnels) <= MaxGateways, "%d tunnels: want at most %d", len(s.Tunnels), MaxGateways), each(s.Tunnels, TunnelStatus.validate),
		each(s.Nodes, func(n NodeStatus) error {
			return errors.Join(n.Path.validate(),
				unless(n.Refused == "" || printable.MatchString(n.Refused), "node %q: reason %q: want printable characters", n.Name, n.Refused))
		}),
	)
}

func (t TunnelStatus) validate() error {
	return errors.Join(
		unless(t.Loss >= 0 && t.Loss <= 1, "loss %v: want 0 to 1", t.Loss), t.Path.validate(),
		unless(t.Transport == "" || t.Transport == WebSocket, "transport %q: want websocket or none", t.Transport),
		allShort("congestion control", t.Congestion),
		unless(t.Unused == "" || printable.MatchString(t.Unused), "reason %q: want printable characters", t.Unused),
	)
}

func (p PathSize) validate() error { return validateKnownMTU(p.MTU) }

func (n Node) validate() error {
	return errors.Join(
		unless(n.Name != "", "node name: missing"), allShort("node or kernel", n.Name, n.Kernel.Release), n.Drift.validate(), each(n.PodCIDRs, validateCIDR),
		each(slices.Concat(n.Pods, slices.Collect(maps.Values(n.OverlaySources))), func(a netip.Addr) error {
			return unless(a.Is4(), "address %s of a pod or overlay source: want an IPv4 address", a)
		}),
		each(n.ForwardDrops, func(d ForwardDrop) error {
			return unless(printable.MatchString(d.Chain), "chain %q: want printable characters", d.Chain)
		}),
		n.Surroundings.validate(),
		each(slices.Collect(maps.Keys(n.Witness)), func(gateway GatewayID) error {
			fault := n.Witness[gateway]
			return unless(fault == "" || printable.MatchString(fault), "gateway %s: fault %q: want printable characters", gateway, fault)
		}),
		unless(len(n.Refused) <= MaxRefused, "%d refused peerings: want at most %d", len(n.Refused), MaxRefused),
		each(slices.Sorted(maps.Keys(n.Refused)), func(peering string) error {
			return errors.Join(ValidateName(peering),
				unless(printable.MatchString(n.Refused[peering]), "refused peering %q: reason %q: want printable characters", peering, n.Refused[peering]))
		}),
	)
}

func validateCIDR(p netip.Prefix) error {
	return cmp.Or(unless(!p.Addr().Is6(), "CIDR %s: IPv6 is not served yet", p),
		unless(p.IsValid() && p == p.Masked(), "CIDR %s: want an IPv4 range without host bits", p))
}

// validateFamilies checks the length of a list with one CIDR or mapping for each address family, of which validateCIDR
// accepts IPv4 alone.
func validateFamilies[T any](what string, byFamily []T) error {
	return unless(len(byFamily) == 1, "%s: %d entries: want one, of IPv4", what, len(byFamily))
}

// Limits for the length of internal and external CIDRs: an overlay ID is a 24-bit offset in half of the internal CIDR,
// and each half must have room: of a /24, for 126 nodes and for the gateways of 15 peerings.
const (
	WidestCIDR    = 8
	NarrowestCIDR = 24
)

// validateHalved checks the length of an internal or external CIDR: helpers calculate with the half of the nodes.
func validateHalved(p netip.Prefix) error {
	return unless(p.Bits() >= WidestCIDR && p.Bits() <= NarrowestCIDR,
		"internal or external CIDR %s: want a length of /%d to /%d", p, WidestCIDR, NarrowestCIDR)
}

// validateKnownMTU accepts 0, which means unknown.
func validateKnownMTU(mtu int) error {
	if mtu == 0 {
		return nil
	}
	return validateMTU(mtu)
}

func validateMTU(mtu int) error {
	return unless(mtu >= setting.MinMTU && mtu <= setting.MaxMTU, "MTU %d: want %d to %d bytes", mtu, setting.MinMTU, setting.MaxMTU)
}
