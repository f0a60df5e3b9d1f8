package records

import (
	"fmt"
	"strconv"
	"strings"
)

// GatewayID names a gateway of this cluster. As text, such as the key of a map in a record, it is the peering's name
// for gateway 1, and "NAME.2" for gateway 2: no name has a dot.
type GatewayID struct {
	Peering string
	Number  int // from 1 to MaxGateways
}

// GatewayIDs are those of a peering's gateways, by their number less one.
func GatewayIDs(peering string, count int) []GatewayID {
	all := make([]GatewayID, count)
	for i := range all {
		all[i] = GatewayID{peering, i + 1}
	}
	return all
}

// Name names the Deployment, ServiceAccount, Role and ConfigMap of the gateway: "gateway-NAME", "gateway2-NAME".
func (g GatewayID) Name() string { return numbered(gatewayPrefix, g.Number) + g.Peering }

// StatusName names the ConfigMap in which the gateway reports: "status-NAME", "status2-NAME".
func (g GatewayID) StatusName() string { return numbered(statusPrefix, g.Number) + g.Peering }

// KeysName names the Secret with the gateway's keys: "peering-NAME", "peering2-NAME".
func (g GatewayID) KeysName() string { return numbered(peeringPrefix, g.Number) + g.Peering }

// Identity is that of the gateway's objects of one component.
func (g GatewayID) Identity(component string) Identity {
	return Identity{component, g.Peering, g.Number}
}

// String is the gateway as text.
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

// numbered is the prefix of the names of a gateway's objects: that of the first has no number.
func numbered(prefix string, number int) string {
	if number == 1 {
		return prefix + "-"
	}
	return fmt.Sprintf("%s%d-", prefix, number)
}
