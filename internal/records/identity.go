package records

import (
	"fmt"
	"strconv"
	"strings"
)

// Identity is what a ConfigMap is. It follows from the object's name alone: a name cannot be changed, and rights are
// given by name, while whoever may write an object may write any label. The prefixes of names differ, and no other name
// begins with one of them: whatever a peer calls itself, no object of its peering has the name of another.
type Identity struct {
	Component string // one of the Component constants
	Peering   string // its name; "" where the object belongs to the installation
	Gateway   int    // number of the gateway that the object belongs to; 0: it belongs to none
}

// Prefixes of the names of a peering's objects. Those of its second gateway and all later ones are followed by the
// number.
const (
	peeringPrefix = "peering"
	gatewayPrefix = "gateway"
	statusPrefix  = "status"
)

// IdentityOf returns what a ConfigMap of that name is, and false if it holds no record.
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

// Labels are those of every object with that identity.
func (i Identity) Labels() map[string]string {
	labels := map[string]string{LabelComponent: i.Component}
	if i.Peering != "" {
		labels[LabelPeering] = i.Peering
	}
	if i.Gateway > 1 {
		labels[LabelGateway] = strconv.Itoa(i.Gateway)
	}
	return labels
}

// CheckLabels reports which label says something else than the identity. Labels of others do not matter.
func (i Identity) CheckLabels(labels map[string]string) error {
	want := i.Labels()
	for _, label := range []string{LabelComponent, LabelPeering, LabelGateway} {
		if got := labels[label]; got != want[label] {
			return fmt.Errorf("label %s is %q, want %q", label, got, want[label])
		}
	}
	return nil
}

// Read decodes the record in a ConfigMap. Name, labels and content must agree.
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
