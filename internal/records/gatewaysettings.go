package records

import (
	"cmp"
	"errors"
	"fmt"
	"math"
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
	// Tunnel is the driver of all tunnels. For one without encryption, Unencrypted is the user's consent, and
	// AllowPublic that to endpoints with public addresses.
	Tunnel      *TunnelKind `json:"tunnel,omitempty"`
	Unencrypted *bool       `json:"unencrypted,omitempty"`
	AllowPublic *bool       `json:"allowPublic,omitempty"`
	// Implementation of WireGuard, of all tunnels. With Kernel, gateway pods have no /dev/net/tun; with others, a node
	// without that device cannot run them.
	Implementation *Implementation `json:"implementation,omitempty"`
	// MTU is the size in bytes of packets between pods; 0: the largest that fits every hop.
	MTU *int `json:"mtu,omitempty"`
	// ClampMSS limits the TCP maximum segment size to what fits the MTU.
	ClampMSS *bool `json:"clampMSS,omitempty"`
	// Transport carries WireGuard's packets.
	Transport *Transport `json:"transport,omitempty"`

	// The Service of the server's gateways. Its ports are UDP, of the first tunnel.
	ServiceType        *ServiceType      `json:"serviceType,omitempty"`
	ServicePort        *uint16           `json:"servicePort,omitempty"`
	NodePort           *uint16           `json:"nodePort,omitempty"`       // 0: the cluster chooses
	LoadBalancerIP     *netip.Addr       `json:"loadBalancerIP,omitempty"` // 0.0.0.0: the provider chooses
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`

	// Where the client reaches the server. "" and 0: at the Service.
	EndpointHost *string `json:"endpointHost,omitempty"` // an address or a DNS name
	EndpointPort *uint16 `json:"endpointPort,omitempty"` // of the first tunnel

	// Where the client reaches the server by WebSocket: at a Service of TCP, or at an Ingress.
	WebSocket          *bool             `json:"webSocket,omitempty"`
	WebSocketPort      *uint16           `json:"webSocketPort,omitempty"` // of the first gateway
	Ingress            *string           `json:"ingress,omitempty"`       // a DNS name; "": none
	IngressClass       *string           `json:"ingressClass,omitempty"`  // "": the cluster's default
	IngressAnnotations map[string]string `json:"ingressAnnotations,omitempty"`

	// How the client gets there. "": directly, and without a password.
	Proxy       *string `json:"proxy,omitempty"`       // a URL
	ProxySecret *string `json:"proxySecret,omitempty"` // in the client's cluster
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

// TunnelKind is the driver of tunnels.
type TunnelKind string

// The drivers. PlainTunnel is VXLAN without encryption.
const (
	WireGuardTunnel TunnelKind = "wireguard"
	PlainTunnel     TunnelKind = "plain"
)

// Unencrypted is the implementation that gateways report of tunnels of PlainTunnel.
const Unencrypted Implementation = "plain"

// Plain reports whether the tunnels have no encryption.
func (s GatewaySettings) Plain() bool { return *s.Complete().Tunnel == PlainTunnel }

// Transport is what carries WireGuard's packets between gateways.
type Transport string

// The transports. AutoTransport is UDP, and WebSocket while UDP does not get through.
const (
	AutoTransport Transport = "auto"
	UDP           Transport = "udp"
	WebSocket     Transport = "websocket"
)

// CarriesWebSocket reports whether the server's gateways accept WebSocket connections.
func (s GatewaySettings) CarriesWebSocket() bool {
	s = s.Complete()
	return *s.Transport != UDP && *s.Tunnel != PlainTunnel && (*s.WebSocket || *s.Ingress != "")
}

// UsesUDP reports whether WireGuard's packets may go by UDP.
func (s GatewaySettings) UsesUDP() bool { return *s.Complete().Transport != WebSocket }

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
	{Flag: "gateway-mode", Group: GroupGateways, initial: string(ActiveActive), usage: "active-active uses all gateways, active-standby the first healthy one",
		Value: func(s *GatewaySettings) setting.Text { return words(&s.GatewayMode, ActiveActive, ActiveStandby) }},
	{Flag: "tunnel", Group: GroupTunnel, initial: string(WireGuardTunnel), usage: "driver of the tunnels; plain: VXLAN without encryption, for lines that are encrypted already",
		Value: func(s *GatewaySettings) setting.Text { return words(&s.Tunnel, WireGuardTunnel, PlainTunnel) },
		needs: func(s GatewaySettings) error {
			return cmp.Or(needs(*s.Tunnel != PlainTunnel || *s.Unencrypted, "its packets are not encrypted", "add --unencrypted if the line encrypts them, or they need no encryption"),
				needs(*s.Tunnel != PlainTunnel || *s.Transport != WebSocket && !*s.WebSocket && *s.Ingress == "", "WebSocket carries WireGuard's packets only", "omit the flags for WebSocket"))
		}},
	{Flag: "unencrypted", Group: GroupTunnel, initial: "false", usage: "confirm that the tunnels have no encryption",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.Unencrypted, "bool", setting.YesOrNo) },
		needs: needsPlain},
	{Flag: "allow-public", Group: GroupTunnel, initial: "false", usage: "let packets without encryption go to public addresses and names",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.AllowPublic, "bool", setting.YesOrNo) },
		needs: needsPlain},
	{Flag: "wireguard", Group: GroupTunnel, initial: string(Auto), usage: "WireGuard implementation; auto: the kernel's if the gateway's node has it",
		Value: func(s *GatewaySettings) setting.Text { return words(&s.Implementation, Auto, Kernel, Userspace) }},
	{Flag: "mtu", Group: GroupTunnel, initial: "0", shown: "0, measured", usage: "MTU of traffic between pods",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.MTU, "BYTES", setting.PacketSize) }},
	{Flag: "mss-clamp", Group: GroupTunnel, initial: "true", usage: "clamp the MSS of TCP connections to the MTU",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.ClampMSS, "bool", setting.YesOrNo) }},
	{Flag: "transport", Group: GroupTunnel, initial: string(AutoTransport), usage: "what carries WireGuard's packets; auto: UDP, and WebSocket while UDP does not get through",
		Value: func(s *GatewaySettings) setting.Text { return words(&s.Transport, AutoTransport, UDP, WebSocket) },
		needs: func(s GatewaySettings) error {
			return needs(*s.Transport != WebSocket || *s.WebSocket || *s.Ingress != "", "the server has no address for WebSocket", "add "+WebSocketFlags)
		}},
	{Flag: "gw-server-service-type", Group: GroupGateways, initial: string(LoadBalancer), ofServer: true, usage: "type of the Service of the server's gateway",
		Value: func(s *GatewaySettings) setting.Text { return words(&s.ServiceType, LoadBalancer, NodePort, ClusterIP) }},
	{Flag: "gw-server-service-port", Group: GroupGateways, initial: "51840", ofServer: true, usage: "first UDP port of the server's Service; each tunnel uses another",
		firstPort: func(s GatewaySettings) *uint16 { return s.ServicePort },
		Value:     func(s *GatewaySettings) setting.Text { return field(&s.ServicePort, "PORT", setting.Port) },
		needs:     func(s GatewaySettings) error { return needsHighPort(s, *s.ServicePort) }},
	{Flag: "gw-server-service-nodeport", Group: GroupGateways, initial: "0", shown: "0, allocated by the cluster", ofServer: true, usage: "first NodePort of the server's Service; each tunnel uses another",
		firstPort: func(s GatewaySettings) *uint16 { return s.NodePort },
		Value:     func(s *GatewaySettings) setting.Text { return field(&s.NodePort, "PORT", setting.PortOrAny) },
		needs:     func(s GatewaySettings) error { return needsType(s, "NodePort", NodePort, LoadBalancer) }},
	{Flag: "gw-server-service-loadbalancerip", Group: GroupGateways, initial: "0.0.0.0", shown: "0.0.0.0, any", ofServer: true, usage: "address to request from the load balancer",
		Value: func(s *GatewaySettings) setting.Text {
			return field(&s.LoadBalancerIP, "ADDRESS", setting.AddressOrAny)
		},
		needs: func(s GatewaySettings) error { return needsType(s, "load balancer", LoadBalancer) }},
	{Flag: "gw-server-service-annotation", Group: GroupGateways, shown: "none", ofServer: true, usage: "annotation of the Service of the server's gateway; repeat for more",
		Value: func(s *GatewaySettings) setting.Text { return annotations(&s.ServiceAnnotations) }},
	{Flag: "gw-client-address", Group: GroupGateways, shown: `"", the Service's`, ofServer: true, usage: "address or name at which the client reaches the server, for example behind port forwarding",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.EndpointHost, "HOST", setting.HostOrAny) }},
	{Flag: "gw-client-port", Group: GroupGateways, initial: "0", shown: "0, the Service's", ofServer: true, usage: "first UDP port at which the client reaches the server; each tunnel uses another",
		firstPort: func(s GatewaySettings) *uint16 { return s.EndpointPort },
		Value:     func(s *GatewaySettings) setting.Text { return field(&s.EndpointPort, "PORT", setting.PortOrAny) },
		needs:     func(s GatewaySettings) error { return needsHighPort(s, *s.EndpointPort) }},
	{Flag: "gw-server-websocket", Group: GroupGateways, initial: "false", ofServer: true, usage: "create a Service of TCP for WebSocket, beside that of UDP",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.WebSocket, "bool", setting.YesOrNo) },
		needs: needsOneAddress},
	{Flag: "gw-server-websocket-port", Group: GroupGateways, initial: "443", ofServer: true, usage: "first TCP port of that Service; each gateway uses another",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.WebSocketPort, "PORT", setting.Port) },
		needs: func(s GatewaySettings) error {
			return cmp.Or(needs(*s.WebSocket, "there is no Service for WebSocket", "add --gw-server-websocket"),
				unless(*s.WebSocketPort <= math.MaxUint16-MaxGateways+1, "the ports of %d gateways count up from it", MaxGateways))
		}},
	{Flag: "gw-server-ingress", Group: GroupGateways, shown: `"", none`, ofServer: true, usage: "host name of an Ingress to create for WebSocket",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.Ingress, "HOST", setting.HostNameOrNone) },
		needs: needsOneAddress},
	{Flag: "gw-server-ingress-class", Group: GroupGateways, shown: `"", the cluster's`, ofServer: true, usage: "class of that Ingress",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.IngressClass, "CLASS", setting.NameOrNone) },
		needs: needsIngress},
	{Flag: "gw-server-ingress-annotation", Group: GroupGateways, shown: "none", ofServer: true, usage: "annotation of that Ingress; repeat for more",
		Value: func(s *GatewaySettings) setting.Text { return annotations(&s.IngressAnnotations) },
		needs: needsIngress},
	{Flag: "gw-client-proxy", Group: GroupGateways, shown: `"", HTTPS_PROXY of its pods, if set`, ofServer: true, usage: "HTTP proxy through which the client reaches the server by WebSocket, such as http://proxy.example:3128",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.Proxy, "URL", setting.ProxyOrNone) }},
	{Flag: "gw-client-proxy-secret", Group: GroupGateways, shown: `"", none`, ofServer: true, usage: "Secret in the client's cluster, in liqonet's namespace, with username and password of that proxy",
		Value: func(s *GatewaySettings) setting.Text { return field(&s.ProxySecret, "NAME", setting.NameOrNone) },
		needs: func(s GatewaySettings) error {
			return needs(*s.Proxy != "", "there is no proxy", "add --gw-client-proxy")
		}},
}

// WebSocketFlags are the flags that give the server an address for WebSocket, as in hints.
const WebSocketFlags = "--gw-server-websocket, or --gw-server-ingress HOST"

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

// needs returns an error with a hint unless a condition holds.
func needs(holds bool, what, advice string) error {
	if holds {
		return nil
	}
	return hint.With(errors.New(what), advice)
}

// needsOneAddress returns an error if the server cannot have the addresses for WebSocket that are set. It is that of
// the setting that is not the default, or of both.
func needsOneAddress(s GatewaySettings) error {
	return cmp.Or(needs(*s.Transport != UDP || !*s.WebSocket && *s.Ingress == "", "the transport is udp", "add --transport auto"),
		needs(!*s.WebSocket || *s.Ingress == "", "a Service and an Ingress exclude each other", "set --gw-server-websocket=false, or --gw-server-ingress ''"))
}

// needsHighPort returns an error for a port of UDP that no transport can take over: gateways have no right to listen
// at ports below 1024.
func needsHighPort(s GatewaySettings, port uint16) error {
	const privileged = 1024
	return needs(port == 0 || port >= privileged || *s.Transport == UDP || !*s.WebSocket && *s.Ingress == "", "WebSocket does not carry packets to UDP ports below 1024",
		"choose another port, or do without WebSocket")
}

// needsPlain returns an error unless the tunnels have no encryption.
func needsPlain(s GatewaySettings) error {
	return needs(*s.Tunnel == PlainTunnel, "the tunnels are encrypted", "add --tunnel plain")
}

// needsIngress returns an error unless there is an Ingress.
func needsIngress(s GatewaySettings) error {
	return needs(*s.Ingress != "", "there is no Ingress", "add --gw-server-ingress HOST")
}

// GatewaySettingTable returns all settings of gateways.
func GatewaySettingTable() []GatewaySetting { return gatewaySettings }

// Usage returns the help of the flag.
func (g GatewaySetting) Usage() string {
	return fmt.Sprintf("%s (default %s)", g.usage, cmp.Or(g.shown, g.initial))
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
	}
	excluded := func(i int) error {
		if needs := gatewaySettings[i].needs; needs != nil && !fields.Field(i).IsNil() {
			return needs(decided.Complete())
		}
		return nil
	}
	for i := range gatewaySettings {
		if given.Field(i).IsNil() && excluded(i) != nil {
			fields.Field(i).SetZero()
		}
	}
	for i, g := range gatewaySettings {
		if err := excluded(i); err != nil {
			return s, fmt.Errorf("--%s %s: %w", g.Flag, g.Value(&s), err)
		}
	}
	return decided, nil
}

// ValidateGiven rejects given settings that are invalid whatever is recorded.
func (s GatewaySettings) ValidateGiven() error {
	err := s.Validate()
	proxy := new("http://any.example:80")
	for _, recorded := range []GatewaySettings{{Proxy: proxy}, {Proxy: proxy, WebSocket: new(true)}, {Proxy: proxy, Ingress: new("any.example")}} {
		if setting.Over(s, recorded).Validate() == nil {
			return nil
		}
	}
	return err
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
	if n := max(len(s.ServiceAnnotations), len(s.IngressAnnotations)); n > maxAnnotations {
		return fmt.Errorf("%d annotations of an object: want at most %d", n, maxAnnotations)
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
