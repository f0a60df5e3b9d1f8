package records

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"sync"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/setting"
	"liqonet.io/liqonet/internal/wireguard"
)

// GatewaySettings are the user's settings of a peering's gateways. The records of both clusters have the same ones. A
// nil field has the default; in the options of an operation, it is left as the records have it. The fields have rows in
// gatewaySettings, in the same order.
type GatewaySettings struct {
	// GatewayMode selects the gateways to which nodes send.
	GatewayMode *GatewayMode `json:"gatewayMode,omitempty"`
	// Implementation of WireGuard, of all tunnels. With Kernel, gateway pods have no /dev/net/tun; with others, a node
	// without that device cannot run them.
	Implementation *Implementation `json:"implementation,omitempty"`
	// MTU is the size in bytes of packets between pods; 0: the largest that fits every hop.
	MTU *int `json:"mtu,omitempty"`
	// ClampMSS limits the TCP maximum segment size to what fits the MTU.
	ClampMSS *bool `json:"clampMSS,omitempty"`

	// The Service of the server's gateways. Its ports are UDP, of the first tunnel.
	ServiceType        *ServiceType      `json:"serviceType,omitempty"`
	ServicePort        *uint16           `json:"servicePort,omitempty"`
	NodePort           *uint16           `json:"nodePort,omitempty"`       // 0: the cluster chooses
	LoadBalancerIP     *netip.Addr       `json:"loadBalancerIP,omitempty"` // 0.0.0.0: the provider chooses
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`

	// Where the client reaches the server. "" and 0: at the Service.
	EndpointHost *string `json:"endpointHost,omitempty"` // an address or a DNS name
	EndpointPort *uint16 `json:"endpointPort,omitempty"` // of the first tunnel
}

// GatewayMode selects which of several gateways carry packets.
type GatewayMode string

// The gateway modes.
const (
	ActiveActive  GatewayMode = "active-active"  // all healthy ones
	ActiveStandby GatewayMode = "active-standby" // the first healthy one
)

// Implementation is the implementation of WireGuard.
type Implementation = wireguard.Implementation

// The implementations of WireGuard. Auto is the kernel's if the kernel has one.
const (
	Auto      = wireguard.Auto
	Kernel    = wireguard.Kernel
	Userspace = wireguard.Userspace
)

// ServiceType is the type of a Service, as in Kubernetes.
type ServiceType string

// The types of Services that a server's gateways can have.
const (
	LoadBalancer ServiceType = "LoadBalancer"
	NodePort     ServiceType = "NodePort"
	ClusterIP    ServiceType = "ClusterIP"
)

// The titles of the groups of flags in help.
const (
	GroupGateways = "Gateways"
	GroupTunnel   = "Tunnel"
)

// gatewaySettings describes the fields of GatewaySettings.
var gatewaySettings = []GatewaySetting{
	{Flag: "gateway-mode", Group: GroupGateways, initial: string(ActiveActive), usage: "which of several gateways carry packets: all, or the first one that can",
		Value: func(s *GatewaySettings) setting.Text { return words(&s.GatewayMode, ActiveActive, ActiveStandby) }},
	{Flag: "wireguard", Group: GroupTunnel, initial: string(Auto), usage: "WireGuard implementation; auto: the kernel's if the gateway's node has it",
		Value: func(s *GatewaySettings) setting.Text { return words(&s.Implementation, Auto, Kernel, Userspace) }},
	{Flag: "mtu", Group: GroupTunnel, initial: "0", usage: "MTU between pods of the two clusters, 0 for the measured path MTU",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.MTU, "BYTES", setting.PacketSize) }},
	{Flag: "mss-clamp", Group: GroupTunnel, initial: "true", usage: "clamp the MSS of TCP connections to the MTU",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.ClampMSS, "bool", setting.YesOrNo) }},
	{Flag: "gw-server-service-type", Group: GroupGateways, initial: string(LoadBalancer), ofServer: true, usage: "type of the Service of the server's gateway",
		Value: func(s *GatewaySettings) setting.Text { return words(&s.ServiceType, LoadBalancer, NodePort, ClusterIP) }},
	{Flag: "gw-server-service-port", Group: GroupGateways, initial: "51840", ofServer: true, usage: "UDP port of the server's gateway; those of further tunnels count up from it",
		firstPort: func(s GatewaySettings) *uint16 { return s.ServicePort },
		Value:     func(s *GatewaySettings) setting.Text { return field(&s.ServicePort, "PORT", setting.Port) }},
	{Flag: "gw-server-service-nodeport", Group: GroupGateways, initial: "0", shown: "allocated by the cluster", ofServer: true, usage: "NodePort of the server's gateway; those of further tunnels count up from it",
		firstPort: func(s GatewaySettings) *uint16 { return s.NodePort },
		Value:     func(s *GatewaySettings) setting.Text { return field(&s.NodePort, "PORT", setting.PortOrAny) },
		needs:     func(s GatewaySettings) error { return needsType(s, "NodePort", NodePort, LoadBalancer) }},
	{Flag: "gw-server-service-loadbalancerip", Group: GroupGateways, initial: "0.0.0.0", shown: "any", ofServer: true, usage: "address to request from the load balancer, 0.0.0.0 for any",
		Value: func(s *GatewaySettings) setting.Text {
			return field(&s.LoadBalancerIP, "ADDRESS", setting.AddressOrAny)
		},
		needs: func(s GatewaySettings) error { return needsType(s, "load balancer", LoadBalancer) }},
	{Flag: "gw-server-service-annotation", Group: GroupGateways, shown: "none", ofServer: true, usage: "annotation of the Service of the server's gateway; repeat for more",
		Value: func(s *GatewaySettings) setting.Text { return annotations(&s.ServiceAnnotations) }},
	{Flag: "gw-client-address", Group: GroupGateways, shown: "the Service's", ofServer: true, usage: `address or name where the client reaches the server, "" for the Service's`,
		Value: func(s *GatewaySettings) setting.Text { return field(&s.EndpointHost, "HOST", setting.HostOrAny) }},
	{Flag: "gw-client-port", Group: GroupGateways, initial: "0", shown: "the Service's", ofServer: true, usage: "UDP port where the client reaches the server, 0 for the Service's; those of further tunnels count up from it",
		firstPort: func(s GatewaySettings) *uint16 { return s.EndpointPort },
		Value:     func(s *GatewaySettings) setting.Text { return field(&s.EndpointPort, "PORT", setting.PortOrAny) }},
}

// GatewaySetting is a setting of gateways: its flag, its default and its rules.
type GatewaySetting struct {
	Flag, Group string // Group is that of the flag in help
	Value       func(*GatewaySettings) setting.Text

	usage    string
	initial  string // the default, as text
	shown    string // the default in help, where its text does not explain itself
	ofServer bool   // it describes the server's cluster: if that changes, the default applies
	// firstPort returns the port of the first tunnel, from which those of other tunnels count up; nil: it is none.
	firstPort func(GatewaySettings) *uint16
	// needs returns an error if other settings, with their defaults, exclude all values but the default; nil: none do.
	needs func(GatewaySettings) error
}

func field[T any](to **T, kind string, read func(text string) (T, error)) setting.Text {
	return setting.Value[*T]{To: to, Read: setting.Optional(read), Kind: kind}
}

func words[T ~string](to **T, allowed ...T) setting.Text {
	return field(to, setting.Words(allowed...), setting.Word(allowed...))
}

func annotations(to *map[string]string) setting.Text {
	return setting.Value[map[string]string]{To: to, Read: setting.Pairs(to, setting.OnePair, annotation), Kind: setting.OnePair}
}

// annotationKey matches the keys of annotations in Kubernetes, but for the length of the domain before the slash. The
// API server does not distinguish capital letters there.
var annotationKey = regexp.MustCompile(`^(([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?\.)*[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// maxAnnotationKey is the length of the longest key: a domain, a slash and a name.
const maxAnnotationKey = 253 + 1 + 63

func annotation(key, value string) (string, error) {
	return value, unless(len(key) <= maxAnnotationKey && annotationKey.MatchString(key), "%q is not an annotation's key: want NAME or PREFIX/NAME", key)
}

// needsType returns an error unless the Service has one of some types.
func needsType(s GatewaySettings, what string, types ...ServiceType) error {
	if slices.Contains(types, *s.ServiceType) {
		return nil
	}
	return hint.With(fmt.Errorf("a Service of type %s has no %s", *s.ServiceType, what), "set --gw-server-service-type")
}

// GatewaySettingTable returns all settings of gateways.
func GatewaySettingTable() []GatewaySetting { return gatewaySettings }

// Usage returns the help of the flag.
func (g GatewaySetting) Usage() string {
	return fmt.Sprintf("%s (default: unchanged, %s in a new peering)", g.usage, cmp.Or(g.shown, g.initial))
}

// Text returns the value in settings, or the default.
func (g GatewaySetting) Text(s GatewaySettings) string {
	return cmp.Or(g.Value(&s).String(), cmp.Or(g.shown, g.initial)+" (default)")
}

var gatewayDefaults = sync.OnceValue(func() (s GatewaySettings) {
	for _, g := range gatewaySettings {
		_ = g.Value(&s).Set(g.initial) // see TestEachSettingHasARow
	}
	return s
})

// Complete returns the settings with the defaults instead of nil.
func (s GatewaySettings) Complete() GatewaySettings { return setting.Over(s, gatewayDefaults()) }

// Decide returns the settings that a peering gets, with nil for defaults: the given ones over the recorded ones.
// Recorded ones that the given ones exclude become the default, and so do those of the server's cluster if the other
// one becomes the server. The error is that of a given one that others exclude.
func (s GatewaySettings) Decide(recorded GatewaySettings, otherServer bool) (GatewaySettings, error) {
	decided := setting.Over(s, recorded)
	given, fields, defaults := reflect.ValueOf(s), reflect.ValueOf(&decided).Elem(), reflect.ValueOf(gatewayDefaults())
	for i, g := range gatewaySettings {
		field := fields.Field(i)
		if otherServer && g.ofServer {
			field.Set(given.Field(i))
		}
		if reflect.DeepEqual(field.Interface(), defaults.Field(i).Interface()) {
			field.SetZero()
		}
		if g.needs == nil || field.IsNil() {
			continue
		}
		if err := g.needs(decided.Complete()); err != nil {
			if !given.Field(i).IsNil() {
				return s, fmt.Errorf("--%s %s: %w", g.Flag, g.Value(&s), err)
			}
			field.SetZero()
		}
	}
	return decided, nil
}

// FirstPort is a port that is set, from which those of further tunnels count up.
type FirstPort struct {
	Flag string
	Port uint16
}

// FirstPorts returns the first ports that are set, in the order of the settings.
func (s GatewaySettings) FirstPorts() (ports []FirstPort) {
	for _, g := range gatewaySettings {
		if g.firstPort == nil {
			continue
		}
		if port := g.firstPort(s); port != nil && *port > 0 {
			ports = append(ports, FirstPort{g.Flag, *port})
		}
	}
	return ports
}

// Validate rejects values that their flags reject, and settings that exclude each other.
func (s GatewaySettings) Validate() error {
	if n := len(s.ServiceAnnotations); n > maxAnnotations {
		return fmt.Errorf("%d annotations of the Service: want at most %d", n, maxAnnotations)
	}
	if _, err := s.Decide(GatewaySettings{}, false); err != nil {
		return err
	}
	var read GatewaySettings
	for i, g := range gatewaySettings {
		for _, text := range setting.Texts(reflect.ValueOf(s).Field(i)) {
			if err := g.Value(&read).Set(text); err != nil {
				return fmt.Errorf("--%s: %w", g.Flag, err)
			}
		}
	}
	// A word may be in another case, and a key may have a "=".
	return unless(reflect.DeepEqual(read, s), "settings are not written as liqoctl writes them")
}
