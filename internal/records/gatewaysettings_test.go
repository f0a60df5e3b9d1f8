package records_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/setting"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// allSettings has another value than the default in each field of one peering.
func allSettings() records.GatewaySettings {
	return records.GatewaySettings{
		GatewayMode: new(records.ActiveStandby), Implementation: new(records.Userspace), MTU: new(1400), ClampMSS: new(false),
		ServiceType: new(records.NodePort), ServicePort: new(uint16(5000)), NodePort: new(uint16(30000)),
		ServiceAnnotations: map[string]string{"example.com/a": "b,c=d", "e": ""},
		EndpointHost:       new("gw.example.com"), EndpointPort: new(uint16(6000)),
		Transport: new(records.WebSocket), WebSocket: new(true), WebSocketPort: new(uint16(8443)),
		Proxy: new("http://proxy.example.com:3128"), ProxySecret: new("proxy"),
	}
}

// withIngress returns settings with an Ingress instead of the Service for WebSocket.
func withIngress(s records.GatewaySettings) records.GatewaySettings {
	s.WebSocket, s.WebSocketPort = nil, nil
	s.Ingress, s.IngressClass, s.IngressAnnotations = new("gw.example.com"), new("traefik"), map[string]string{"example.com/a": "b,c=d"}
	return s
}

// TestEachSettingHasAnExample: tests that merge settings, or write and read them, use every field.
func TestEachSettingHasAnExample(t *testing.T) {
	examples := []records.GatewaySettings{allSettings(), withIngress(allSettings()), withoutEncryption(), {LoadBalancerIP: new(netip.MustParseAddr("192.0.2.1"))}}
	for i := range reflect.TypeFor[records.GatewaySettings]().NumField() {
		if !slices.ContainsFunc(examples, func(s records.GatewaySettings) bool { return !reflect.ValueOf(s).Field(i).IsNil() }) {
			t.Errorf("no example has %s", reflect.TypeFor[records.GatewaySettings]().Field(i).Name)
		}
	}
}

// TestEachSettingHasARow: each field of the settings has a default, no text where it is not set and, in the same
// order, a flag that sets it alone.
func TestEachSettingHasARow(t *testing.T) {
	complete := records.GatewaySettings{}.Complete()
	fields := reflect.TypeFor[records.GatewaySettings]()
	if table := records.GatewaySettingTable(); len(table) != fields.NumField() {
		t.Fatalf("%d rows, %d fields", len(table), fields.NumField())
	}
	none, err := json.Marshal(records.GatewaySettings{})
	require.NoError(t, err)
	assert.Equal(t, "no setting", "{}", string(none))
	for i, g := range records.GatewaySettingTable() {
		var read records.GatewaySettings
		for _, text := range setting.Texts(reflect.ValueOf(complete).Field(i)) {
			require.NoError(t, g.Value(&read).Set(text))
		}
		for j := range fields.NumField() {
			if one := reflect.ValueOf(read).Field(j); one.IsNil() == (i == j) {
				t.Errorf("--%s sets %s: %t", g.Flag, fields.Field(j).Name, !one.IsNil())
			}
		}
	}
}

// TestDecide: given settings count, then recorded ones, then defaults.
func TestDecide(t *testing.T) {
	all := allSettings()
	clusterIP, noPort := all, all
	clusterIP.ServiceType, clusterIP.NodePort = new(records.ClusterIP), nil
	noPort.NodePort = nil
	for name, c := range map[string]struct{ given, recorded, want records.GatewaySettings }{
		"nothing":              {},
		"recorded":             {recorded: all, want: all},
		"given":                {given: all, recorded: records.GatewaySettings{MTU: new(1300)}, want: all},
		"defaults":             {given: records.GatewaySettings{}.Complete(), recorded: all},
		"one default":          {given: records.GatewaySettings{NodePort: new(uint16(0))}, recorded: all, want: noPort},
		"another Service":      {given: records.GatewaySettings{ServiceType: new(records.ClusterIP)}, recorded: all, want: clusterIP},
		"an Ingress":           {given: withIngress(records.GatewaySettings{}), recorded: all, want: withIngress(all)},
		"no longer an Ingress": {given: records.GatewaySettings{WebSocket: new(true), WebSocketPort: all.WebSocketPort}, recorded: withIngress(all), want: all},
		"UDP": {given: records.GatewaySettings{Transport: new(records.UDP)}, recorded: records.GatewaySettings{Transport: new(records.WebSocket), WebSocket: new(true), WebSocketPort: new(uint16(8443))},
			want: records.GatewaySettings{Transport: new(records.UDP)}},
		"no encryption":        {given: withoutEncryption(), want: withoutEncryption()},
		"encryption":           {given: records.GatewaySettings{Tunnel: new(records.WireGuardTunnel)}, recorded: withoutEncryption()},
		"no WebSocket":         {given: records.GatewaySettings{WebSocket: new(false)}, recorded: records.GatewaySettings{Transport: new(records.WebSocket), WebSocket: new(true), WebSocketPort: new(uint16(8443))}},
		"no proxy":             {given: records.GatewaySettings{Proxy: new("")}, recorded: records.GatewaySettings{Proxy: all.Proxy, ProxySecret: all.ProxySecret}},
		"no longer an address": {given: all, recorded: records.GatewaySettings{LoadBalancerIP: new(netip.MustParseAddr("192.0.2.1"))}, want: all},
	} {
		got, err := c.given.Decide(c.recorded, false)
		require.NoError(t, err)
		assert.Equal(t, name, c.want, got, comparable)
		assert.NoError(t, got.Validate())
	}
	_, err := records.GatewaySettings{LoadBalancerIP: new(netip.MustParseAddr("192.0.2.1"))}.Decide(all, false)
	assert.ErrorContains(t, "an address for a NodePort", err, "--gw-server-service-loadbalancerip 192.0.2.1: a Service of type NodePort has no load balancer")
	assert.Equal(t, "hint", "set --gw-server-service-type", hint.Of(err))
}

// withoutEncryption returns the settings of tunnels without encryption to public addresses.
func withoutEncryption() records.GatewaySettings {
	return records.GatewaySettings{Tunnel: new(records.PlainTunnel), Unencrypted: new(true), AllowPublic: new(true)}
}

// TestPlainNeedsConsent: tunnels have no encryption only with the user's consent, and never by WebSocket.
func TestPlainNeedsConsent(t *testing.T) {
	yes := new(true)
	plain := records.GatewaySettings{Tunnel: new(records.PlainTunnel)}
	confirmed := records.GatewaySettings{Tunnel: plain.Tunnel, Unencrypted: yes}
	for name, c := range map[string]struct {
		given, recorded records.GatewaySettings
		want            string
	}{
		"no confirmation":   {plain, records.GatewaySettings{}, "--tunnel plain: its packets are not encrypted"},
		"confirmed of what": {records.GatewaySettings{Unencrypted: yes}, records.GatewaySettings{}, "--unencrypted true: the tunnels are encrypted"},
		"public":            {records.GatewaySettings{AllowPublic: yes}, records.GatewaySettings{}, "--allow-public true: the tunnels are encrypted"},
		"WebSocket":         {confirmed, records.GatewaySettings{WebSocket: yes}, "--tunnel plain: WebSocket carries WireGuard's packets only"},
		"an Ingress":        {confirmed, records.GatewaySettings{Ingress: new("gw.example.com")}, "--tunnel plain: WebSocket carries WireGuard's packets only"},
	} {
		_, err := c.given.Decide(c.recorded, false)
		assert.ErrorContains(t, name, err, c.want)
	}
}

// TestSettingsOfAnotherServer: the settings of the tunnel stay, those of the server's cluster do not.
func TestSettingsOfAnotherServer(t *testing.T) {
	// Without the new server's address for WebSocket, the transport is the default.
	want := records.GatewaySettings{GatewayMode: new(records.ActiveStandby), Implementation: new(records.Userspace), MTU: new(1400), ClampMSS: new(false)}
	got, err := records.GatewaySettings{}.Decide(allSettings(), true)
	require.NoError(t, err)
	assert.Equal(t, "settings", want, got, comparable)
	given := records.GatewaySettings{EndpointHost: new("other.example")}
	want.EndpointHost = given.EndpointHost
	got, err = given.Decide(allSettings(), true)
	require.NoError(t, err)
	assert.Equal(t, "settings with an endpoint", want, got, comparable)
}

// TestSettingsAreChecked: a record has only values that flags accept, in the form in which liqoctl writes them.
func TestSettingsAreChecked(t *testing.T) {
	for want, s := range map[string]records.GatewaySettings{
		"--gateway-mode: must be one of active-active, active-standby":       {GatewayMode: new(records.GatewayMode("some"))},
		"--wireguard: must be one of auto, kernel, userspace":                {Implementation: new(records.Implementation(""))},
		"--mtu: must be a number of bytes":                                   {MTU: new(-1)},
		"--gw-client-address: must be an IP address":                         {EndpointHost: new("a b")},
		"--gw-server-service-port: must be a port":                           {ServicePort: new(uint16(0))},
		"--gw-server-service-loadbalancerip: must be an IP address":          {LoadBalancerIP: new(netip.Addr{})},
		"--gw-server-service-nodeport 3: a Service of type ClusterIP has no": {ServiceType: new(records.ClusterIP), NodePort: new(uint16(3))},
		"--transport websocket: the server has no address for WebSocket":     {Transport: new(records.WebSocket)},
		"--gw-server-websocket true: the transport is udp":                   {Transport: new(records.UDP), WebSocket: new(true)},
		"--gw-server-websocket true: a Service and an Ingress exclude":       {WebSocket: new(true), Ingress: new("gw.example.com")},
		"--gw-server-websocket-port 8443: there is no Service":               {WebSocketPort: new(uint16(8443))},
		"--gw-server-websocket-port 65530: the ports of 8 gateways count up": {WebSocket: new(true), WebSocketPort: new(uint16(65530))},
		"--gw-server-ingress gw.example.com: the transport is udp":           {Transport: new(records.UDP), Ingress: new("gw.example.com")},
		"--gw-server-ingress: must be a name in lower case":                  {Ingress: new("192.0.2.1")},
		"--gw-server-ingress-class traefik: there is no Ingress":             {IngressClass: new("traefik")},
		"--gw-server-ingress-annotation a=b: there is no Ingress":            {IngressAnnotations: map[string]string{"a": "b"}},
		"--gw-client-proxy: must be http://HOST:PORT":                        {Proxy: new("http://user:pw@proxy.example.com:3128")},
		"--gw-client-proxy-secret proxy: there is no proxy":                  {ProxySecret: new("proxy")},
		"not written as liqoctl":                                             {ServiceType: new(records.ServiceType("nodeport"))},
		"not an annotation's key":                                            {ServiceAnnotations: map[string]string{"a/b/c": ""}},
		`"a..b/c" is not an annotation's key`:                                {ServiceAnnotations: map[string]string{"a..b/c": ""}},
		`"a-/c" is not an annotation's key`:                                  {ServiceAnnotations: map[string]string{"a-/c": ""}},
	} {
		p := peering()
		p.Settings = s
		_, err := records.Encode(p)
		assert.ErrorContains(t, want, err, want)
	}
	for _, s := range []records.GatewaySettings{allSettings(), withIngress(allSettings())} {
		p := peering()
		p.Settings = s
		text, err := records.Encode(p)
		require.NoError(t, err)
		got, err := records.Decode[records.Peering](text)
		require.NoError(t, err)
		assert.Equal(t, "after encode and decode", p, got, comparable)
	}
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprint(i)] = ""
	}
	for _, s := range []records.GatewaySettings{{ServiceAnnotations: many}, {Ingress: new("gw.example.com"), IngressAnnotations: many}} {
		assert.ErrorContains(t, "annotations", s.Validate(), "65 annotations of an object: want at most 64")
	}
}

// TestValidateGiven: flags are refused at once only if no recorded settings could make them valid.
func TestValidateGiven(t *testing.T) {
	all := allSettings()
	for name, s := range map[string]records.GatewaySettings{
		"nothing":                      {},
		"transport":                    {Transport: all.Transport},
		"port of WebSocket":            {WebSocketPort: all.WebSocketPort},
		"class of an Ingress":          {IngressClass: new("traefik")},
		"Secret of a proxy":            {ProxySecret: all.ProxySecret},
		"transport, class and a proxy": {Transport: all.Transport, IngressClass: new("traefik"), ProxySecret: all.ProxySecret},
	} {
		assert.NoError(t, s.ValidateGiven())
		if _, err := s.Decide(records.GatewaySettings{}, false); (err == nil) != (name == "nothing") {
			t.Errorf("%s: without a record: %v", name, err)
		}
	}
	for want, s := range map[string]records.GatewaySettings{
		"--gw-server-service-nodeport 3: a Service of type ClusterIP has no": {ServiceType: new(records.ClusterIP), NodePort: new(uint16(3))},
		"--transport websocket: the server has no address for WebSocket":     {Transport: all.Transport, WebSocket: new(false), Ingress: new("")},
		"--gw-server-websocket true: a Service and an Ingress exclude":       {WebSocket: new(true), Ingress: new("gw.example.com")},
		"--gw-client-proxy-secret proxy: there is no proxy":                  {Proxy: new(""), ProxySecret: all.ProxySecret},
		"--gw-client-proxy: must be http://HOST:PORT":                        {Proxy: new("ftp://proxy.example.com")},
	} {
		assert.ErrorContains(t, want, s.ValidateGiven(), want)
	}
}

// TestCarriesWebSocket: the server listens if it has an address and the transport is not UDP.
func TestCarriesWebSocket(t *testing.T) {
	for name, c := range map[string]struct {
		s    records.GatewaySettings
		want bool
	}{
		"nothing": {}, "Service": {allSettings(), true}, "Ingress": {withIngress(records.GatewaySettings{}), true},
		"neither": {records.GatewaySettings{WebSocket: new(false), Ingress: new("")}, false},
		"UDP":     {records.GatewaySettings{WebSocket: new(true), Transport: new(records.UDP)}, false},
	} {
		assert.Equal(t, name, c.want, c.s.CarriesWebSocket())
	}
}
