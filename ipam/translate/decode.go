package translate

import (
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/internal/records"
)

// Decode reads the records of a cluster: key "record" of ConfigMap "fabric", and the same key of the ConfigMaps
// that bear the label liqonet.io/component=peering, all in the namespace of liqonet. A record that is damaged, or
// of a version that this package does not know, is an error.
func Decode(fabric string, peerings ...string) (Cluster, error) {
	f, err := records.Decode[records.Fabric](fabric)
	if err != nil {
		return Cluster{}, fmt.Errorf("read fabric: %w", err)
	}
	translators := make([]Translator, 0, len(peerings))
	for i, text := range peerings {
		p, err := records.Decode[records.Peering](text)
		if err != nil {
			return Cluster{}, fmt.Errorf("read peering %d of %d: %w", i+1, len(peerings), err)
		}
		t, err := New(configOf(f, p))
		if err != nil {
			return Cluster{}, fmt.Errorf("read peering %q: %w", p.Name, err)
		}
		translators = append(translators, t)
	}
	return NewCluster(translators...)
}

func configOf(f records.Fabric, p records.Peering) Config {
	c := Config{
		Peer:     p.Name,
		Remote:   Side{Pods: mappings(p.Peer.PodCIDRs), External: Mapping(p.Peer.ExternalCIDR)},
		Internal: f.InternalCIDR,
		Exposed:  make(map[netip.Addr]netip.Addr, len(p.Exposed)),
	}
	for _, e := range p.Exposed {
		c.Exposed[e.Host] = e.Address
	}
	if p.Local.Known() {
		c.Local = Side{Pods: mappings(p.Local.PodCIDRs), External: Mapping(p.Local.ExternalCIDR)}
	}
	return c
}

func mappings(recorded []records.Mapping) []Mapping {
	all := make([]Mapping, len(recorded))
	for i, m := range recorded {
		all[i] = Mapping(m)
	}
	return all
}
