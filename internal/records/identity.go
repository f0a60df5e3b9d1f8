package records

import (
	"fmt"
	"strconv"
	"strings"
)

// Identity identifies the contents of a ConfigMap. It is derived from the object's name only: names are immutable and
// RBAC rules refer to names, whereas every writer of an object can change its labels. No prefix of a name begins with
// another prefix. Therefore the objects of a peering cannot collide with others, whatever name the peer chooses.
type Identity struct {
	Component string // one of the Component constants
	Peering   string // name of the peering; "" for objects of the installation
	Gateway   int    // number of the gateway that the object belongs to; 0: none
}

// Prefixes for names of a peering's objects. From the second gateway on, the number follows.
const (
	peeringPrefix = "peering"
	gatewayPrefix = "gateway"
	statusPrefix  = "status"

	webSocketPrefix = "websocket" // of no ConfigMap
)

// IdentityOf returns the identity of the ConfigMap with that name, and false if it contains no record.
func IdentityOf(name string) (Identity, bool) {
	switch name {
	case FabricName:
		return Identity{Component: ComponentFabric}, true
	case IPAMName:
		return Identity{Component: ComponentIPAM}, true
	}
	if peering, ok := strings.CutPrefix(name, peeringPrefix+"-"); ok {
		return Identity{Component: ComponentPeering, Peering: peering}, ValidateName(peering) == nil
	}
	for number := 1; number <= MaxGateways; number++ {
		for prefix, component := range map[string]string{gatewayPrefix: ComponentGateway, statusPrefix: ComponentStatus} {
			if peering, ok := strings.CutPrefix(name, numbered(prefix, number)); ok {
				return Identity{component, peering, number}, ValidateName(peering) == nil
			}
		}
	}
	return Identity{}, false
}

// Labels returns the labels of every object with that identity.
func (i Identity) Labels() map[string]string {
	labels := map[string]string{LabelComponent: i.Component}
	if i.Peering != "" {
		labels[LabelPeering] = i.Peering
	}
	if i.Gateway > 0 {
		labels[LabelGateway] = strconv.Itoa(i.Gateway)
	}
	return labels
}

// CheckLabels returns an error for the first label that does not match the identity. It ignores foreign labels.
func (i Identity) CheckLabels(labels map[string]string) error {
	want := i.Labels()
	for _, label := range []string{LabelComponent, LabelPeering, LabelGateway} {
		if got := labels[label]; got != want[label] {
			return fmt.Errorf("label %s is %q, want %q", label, got, want[label])
		}
	}
	return nil
}

// Read decodes the record in a ConfigMap. Name, labels and content must match.
func Read[T Document](name string, labels, data map[string]string) (T, error) {
	var zero T
	id, ok := IdentityOf(name)
	if !ok || id.Component != zero.identity().Component {
		return zero, fmt.Errorf("read ConfigMap %s: it holds no %s", name, zero.identity().Component)
	}
	if err := id.CheckLabels(labels); err != nil {
		return zero, fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	d, err := Decode[T](data[DataKey])
	if err != nil {
		return d, fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	if named := d.identity().Peering; named != "" && named != id.Peering {
		return zero, fmt.Errorf("read ConfigMap %s: it is the record of peering %q", name, named)
	}
	return d, nil
}

func (f Fabric) identity() Identity  { return Identity{Component: ComponentFabric} }
func (p Peering) identity() Identity { return Identity{Component: ComponentPeering, Peering: p.Name} }
func (g Gateway) identity() Identity { return Identity{Component: ComponentGateway} }
func (s Status) identity() Identity  { return Identity{Component: ComponentStatus} }
func (n Node) identity() Identity    { return Identity{Component: ComponentNode} }
