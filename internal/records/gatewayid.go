package records

import (
	"fmt"
	"strconv"
	"strings"
)

// GatewayID identifies a gateway of this cluster. Its text form, used for example as a map key in records, is the
// peering's name for gateway 1 and "NAME.2" for gateway 2. It is unambiguous because names contain no dot.
type GatewayID struct {
	Peering string
	Number  int // from 1 to MaxGateways
}

// GatewayIDs returns the IDs of a peering's gateways 1 to count, in order.
func GatewayIDs(peering string, count int) []GatewayID {
	all := make([]GatewayID, count)
	for i := range all {
		all[i] = GatewayID{peering, i + 1}
	}
	return all
}

// Name is the name of the gateway's Deployment, ServiceAccount, Role and ConfigMap: "gateway-NAME", "gateway2-NAME".
func (g GatewayID) Name() string { return numbered(gatewayPrefix, g.Number) + g.Peering }

// StatusName is the name of the ConfigMap with the gateway's status: "status-NAME", "status2-NAME".
func (g GatewayID) StatusName() string { return numbered(statusPrefix, g.Number) + g.Peering }

// KeysName is the name of the Secret with the gateway's keys: "peering-NAME", "peering2-NAME".
func (g GatewayID) KeysName() string { return numbered(peeringPrefix, g.Number) + g.Peering }

// Identity returns the identity of the gateway's objects of one component.
func (g GatewayID) Identity(component string) Identity {
	return Identity{component, g.Peering, g.Number}
}

// String returns the text form.
func (g GatewayID) String() string {
	if g.Number == 1 {
		return g.Peering
	}
	return fmt.Sprintf("%s.%d", g.Peering, g.Number)
}

// MarshalText implements encoding.TextMarshaler.
func (g GatewayID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (g *GatewayID) UnmarshalText(text []byte) error {
	name, number, several := strings.Cut(string(text), ".")
	read := GatewayID{name, 1}
	if several {
		read.Number, _ = strconv.Atoi(number)
	}
	if read.String() != string(text) || read.Number < 1 || read.Number > MaxGateways {
		return fmt.Errorf("gateway %q: want the name of a peering, or NAME.2 to NAME.%d", text, MaxGateways)
	}
	*g = read
	return ValidateName(name)
}

// numbered returns the prefix for names of a gateway's objects. It has no number for gateway 1.
func numbered(prefix string, number int) string {
	if number == 1 {
		return prefix + "-"
	}
	return fmt.Sprintf("%s%d-", prefix, number)
}
