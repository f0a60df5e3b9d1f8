package commands

import (
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
)

// sideFlags are the flags that say of one cluster what would else be discovered or chosen.
type sideFlags struct {
	prefix string // of the flags' names: "" or remotePrefix
	side   peering.Side
}

// newSideFlags adds the flags of one cluster to a command; a prefix other than "" makes them the remote's.
func newSideFlags(cmd *cobra.Command, prefix string) *sideFlags {
	s := &sideFlags{prefix: prefix}
	s.side.Overrides.FlagPrefix = prefix
	which := "local"
	if prefix != "" {
		which = "remote"
	}
	o := &s.side.Overrides
	textFlag(cmd.Flags(), &s.side.Name, prefix+"name", "NAME", "name of the "+which+" cluster at its peers (default: from its kube context)", func(name string) error {
		return records.ValidateName(name)
	})
	for _, f := range []struct {
		name  string
		to    *[]netip.Prefix
		usage string
	}{
		{"pod-cidr", &o.PodCIDRs, "pod CIDRs of the %s (default: discovered)"},
		{"service-cidr", &o.ServiceCIDRs, "service CIDRs of the %s (default: discovered)"},
		{"node-network", &o.NodeNetworks, "networks of the nodes of the %s (default: discovered)"},
		{"reserve", &s.side.Reserved, "CIDRs never allocated as remapped CIDRs in the %s"},
		{"pool", &s.side.Pools, "pools for remapped CIDRs in the %s, in order of preference (default 10.0.0.0/8,172.16.0.0/12,192.168.0.0/16)"},
	} {
		prefixesFlag(cmd.Flags(), f.to, prefix+f.name, strings.ReplaceAll(f.usage, "%s", which+" cluster"))
	}
	prefixFlag(cmd.Flags(), &s.side.ExternalCIDR, prefix+"external-cidr", "external CIDR: addresses of nodes and exposed hosts of the "+which+" cluster at its peers (default 10.70.0.0/16)")
	prefixFlag(cmd.Flags(), &s.side.InternalCIDR, prefix+"internal-cidr", "internal CIDR: addresses of nodes and gateways in the overlay of the "+which+" cluster (default 10.80.0.0/16)")
	return s
}

// options returns the side without a client.
func (s *sideFlags) options() (peering.Side, error) {
	external, internal := s.side.ExternalCIDR, s.side.InternalCIDR
	if external.IsValid() && internal.IsValid() && external.Bits() != internal.Bits() {
		return peering.Side{}, usagef("--%sexternal-cidr %s and --%sinternal-cidr %s differ in length: node addresses are translated 1:1 between them",
			s.prefix, external, s.prefix, internal)
	}
	for name, cidr := range map[string]netip.Prefix{"internal": internal, "external": external} {
		if cidr.IsValid() && (cidr.Bits() < peering.WidestCIDR || cidr.Bits() > peering.NarrowestCIDR) {
			return peering.Side{}, usagef("--%s%s-cidr %s: the length must be /%d to /%d", s.prefix, name, cidr, peering.WidestCIDR, peering.NarrowestCIDR)
		}
	}
	return s.side, s.checkOverlap()
}

// checkOverlap refuses a pod CIDR that overlaps a service CIDR.
func (s *sideFlags) checkOverlap() error {
	for _, pods := range s.side.Overrides.PodCIDRs {
		for _, services := range s.side.Overrides.ServiceCIDRs {
			if pods.Overlaps(services) {
				return usagef("--%spod-cidr %s and --%sservice-cidr %s overlap", s.prefix, pods, s.prefix, services)
			}
		}
	}
	return nil
}
