package commands

import (
	"net/netip"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	flags := cmd.Flags()
	flags.StringVar(&s.side.Name, prefix+"name", "", "`NAME` by which peers know the "+which+" cluster (default: made from its kube context)")
	s.ranges(flags, "pod-cidr", &s.side.Overrides.PodCIDRs, "ranges of the pods of the "+which+" cluster (default: discovered)")
	s.ranges(flags, "service-cidr", &s.side.Overrides.ServiceCIDRs, "ranges of the Services of the "+which+" cluster (default: discovered)")
	s.ranges(flags, "node-network", &s.side.Overrides.NodeNetworks, "networks of the nodes of the "+which+" cluster (default: discovered)")
	s.ranges(flags, "reserve", &s.side.Reserved, "ranges that are never used in the "+which+" cluster to reach a peer")
	s.ranges(flags, "pool", &s.side.Pools, "ranges of which the "+which+" cluster takes free ones, the first with room first (default: 10.0.0.0/8,172.16.0.0/12,192.168.0.0/16)")
	s.only(flags, "external-cidr", &s.side.ExternalCIDR, "range by which peers see what is not a pod of the "+which+" cluster (default: 10.70.0.0/16)")
	s.only(flags, "internal-cidr", &s.side.InternalCIDR, "range of the addresses of nodes and gateways in the overlay of the "+which+" cluster (default: 10.80.0.0/16)")
	return s
}

func (s *sideFlags) ranges(flags *pflag.FlagSet, name string, value *[]netip.Prefix, usage string) {
	flags.Var(newPrefixes(value), s.prefix+name, usage)
}

func (s *sideFlags) only(flags *pflag.FlagSet, name string, value *netip.Prefix, usage string) {
	flags.Var(prefix{value}, s.prefix+name, usage)
}

// options returns the side without a client.
func (s *sideFlags) options() (peering.Side, error) {
	external, internal := s.side.ExternalCIDR, s.side.InternalCIDR
	if external.IsValid() && internal.IsValid() && external.Bits() != internal.Bits() {
		return peering.Side{}, usagef("--%sexternal-cidr %s and --%sinternal-cidr %s differ in length: nodes are translated 1:1 between them",
			s.prefix, external, s.prefix, internal)
	}
	if internal.IsValid() && (internal.Bits() < peering.WidestCIDR || internal.Bits() > peering.NarrowestCIDR) {
		return peering.Side{}, usagef("--%sinternal-cidr %s: want a length of /%d to /%d", s.prefix, internal, peering.WidestCIDR, peering.NarrowestCIDR)
	}
	if external.IsValid() && (external.Bits() < peering.WidestCIDR || external.Bits() > peering.NarrowestCIDR) {
		return peering.Side{}, usagef("--%sexternal-cidr %s: want a length of /%d to /%d", s.prefix, external, peering.WidestCIDR, peering.NarrowestCIDR)
	}
	if err := s.checkOverlap(); err != nil {
		return peering.Side{}, err
	}
	if s.side.Name != "" {
		if err := records.ValidateName(s.side.Name); err != nil {
			return peering.Side{}, usagef("--%sname: %w", s.prefix, err)
		}
	}
	return s.side, nil
}

// checkOverlap refuses addresses that would be both those of pods and of Services.
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
