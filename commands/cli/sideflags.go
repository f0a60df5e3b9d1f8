package cli

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
)

// SideFlags adds the flags that say of one cluster what would else be discovered or chosen; a prefix other than ""
// makes them the remote's.
func SideFlags(cmd *cobra.Command, to *peering.Side, prefix string) {
	o := &to.Overrides
	o.FlagPrefix = prefix
	which := cmp.Or(strings.TrimSuffix(prefix, "-"), "local") + " cluster"
	ui.TextFlag(cmd.Flags(), &to.Name, prefix+"name", "NAME", "name of the "+which+"; it cannot change later (default: from the context)", records.ValidateName)
	for _, f := range []struct {
		name  string
		to    *[]netip.Prefix
		usage string
	}{
		{"pod-cidr", &o.PodCIDRs, "pod CIDRs of the %s (default: discovered)"},
		{"service-cidr", &o.ServiceCIDRs, "service CIDRs of the %s (default: discovered)"},
		{"node-network", &o.NodeNetworks, "networks of the nodes of the %s (default: discovered)"},
		{"reserve", &to.Reserved, "CIDRs never allocated as remapped CIDRs in the %s"},
		{"pool", &to.Pools, "pools for remapped CIDRs in the %s, in order of preference (default 10.0.0.0/8,172.16.0.0/12,192.168.0.0/16)"},
	} {
		ui.PrefixesFlag(cmd.Flags(), f.to, prefix+f.name, strings.ReplaceAll(f.usage, "%s", which))
	}
	ui.PrefixFlag(cmd.Flags(), &to.ExternalCIDR, prefix+"external-cidr", "external CIDR: addresses of nodes and exposed hosts of the "+which+" at its peers (default 10.70.0.0/16)")
	ui.PrefixFlag(cmd.Flags(), &to.InternalCIDR, prefix+"internal-cidr", "internal CIDR: addresses of nodes and gateways in the overlay of the "+which+" (default 10.80.0.0/16)")
}

// CheckSide refuses CIDRs of a cluster that contradict each other, or that cannot serve.
func CheckSide(s peering.Side) error {
	external, internal, prefix := s.ExternalCIDR, s.InternalCIDR, s.Overrides.FlagPrefix
	if external.IsValid() && internal.IsValid() && external.Bits() != internal.Bits() {
		return Usagef("--%sexternal-cidr %s and --%sinternal-cidr %s differ in length: node addresses are translated 1:1 between them",
			prefix, external, prefix, internal)
	}
	for name, cidr := range map[string]netip.Prefix{"internal": internal, "external": external} {
		if cidr.IsValid() && (cidr.Bits() < records.WidestCIDR || cidr.Bits() > records.NarrowestCIDR) {
			return Usagef("--%s%s-cidr %s: the length must be /%d to /%d", prefix, name, cidr, records.WidestCIDR, records.NarrowestCIDR)
		}
	}
	for _, pods := range s.Overrides.PodCIDRs {
		for _, services := range s.Overrides.ServiceCIDRs {
			if pods.Overlaps(services) {
				return Usagef("--%spod-cidr %s and --%sservice-cidr %s overlap", prefix, pods, prefix, services)
			}
		}
	}
	return nil
}
