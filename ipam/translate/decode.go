package translate

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
)

// ErrNoFabric means that the cluster has no fabric record.
var ErrNoFabric = errors.New("liqonet is not installed, or its installation is not finished")

// Read is Decode for the ConfigMaps in the namespace of liqonet. Other ConfigMaps are ignored. Without a fabric the
// error is ErrNoFabric.
func Read(objects []*corev1.ConfigMap) (Cluster, error) {
	fabric := ""
	peerings := make(map[string]string)
	for _, o := range objects {
		switch id, _ := records.IdentityOf(o.Name); id.Component {
		case records.ComponentFabric:
			fabric = o.Data[records.DataKey]
		case records.ComponentPeering:
			peerings[o.Name] = o.Data[records.DataKey]
		}
	}
	if fabric == "" {
		return Cluster{}, ErrNoFabric
	}
	return Decode(fabric, peerings)
}

// Decode reads the records of a cluster: key "record" of ConfigMap "fabric", and the same key of the ConfigMaps with
// label liqonet.io/component=peering, by name. All are in the namespace of liqonet.
//
// A peering record that is damaged, or of an unknown version, does not affect other peerings: Cluster.Damage reports
// it, and so do the methods that need that peering. A fabric that cannot be read, or two peers reached by the same
// addresses, are an error.
func Decode(fabric string, peerings map[string]string) (Cluster, error) {
	f, err := records.Decode[records.Fabric](fabric)
	if err != nil {
		return Cluster{}, fmt.Errorf("read ConfigMap %s: %w", records.FabricName, err)
	}
	damaged := make(map[string]*DamagedError)
	var translators []Translator
	for object, text := range peerings {
		name := strings.TrimPrefix(object, records.PeeringName(""))
		t, err := decodePeering(f, name, text)
		if err != nil {
			damaged[name] = &DamagedError{Peer: name, Err: fmt.Errorf("read ConfigMap %s: %w", object, err)}
			continue
		}
		translators = append(translators, t)
	}
	c, err := NewCluster(translators...)
	c.damaged = damaged
	return c, err
}

func decodePeering(f records.Fabric, name, text string) (Translator, error) {
	p, err := records.Decode[records.Peering](text)
	if err != nil {
		return Translator{}, err
	}
	if p.Name != name {
		return Translator{}, fmt.Errorf("it is the record of peering %q", p.Name)
	}
	return New(configOf(f, p))
}

func configOf(f records.Fabric, p records.Peering) Config {
	c := Config{
		Peer:     p.Name,
		Remote:   Side{Pods: p.Peer.PodCIDRs, External: p.Peer.ExternalCIDR()},
		Internal: f.InternalCIDR(),
		Exposed:  make(map[netip.Addr]netip.Addr, len(p.Exposed)),
	}
	for _, e := range p.Exposed {
		c.Exposed[e.Host] = e.Address
	}
	if p.Local.Known() {
		c.Local = Side{Pods: p.Local.PodCIDRs, External: p.Local.ExternalCIDR()}
	}
	return c
}
