package peering

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// reachable lists the Services and Ingresses of a cluster.
func reachable(t *testing.T, w *fakecluster.Cluster) (names []string) {
	t.Helper()
	objects, err := w.List(t.Context(), records.LabelComponent)
	require.NoError(t, err)
	for _, o := range objects {
		switch o.(type) {
		case *corev1.Service:
			names = append(names, "Service "+o.GetName())
		case *networkingv1.Ingress:
			names = append(names, "Ingress "+o.GetName())
		}
	}
	slices.Sort(names)
	return names
}

// TestWebSocketSettingsChange: the server's cluster has the Services and the Ingress that the settings want, and no
// others; the client's record has their addresses. Disconnect removes them.
func TestWebSocketSettingsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := connectOptions(a, b)
		o.Remote.Gateways = 2
		fakecluster.Must(t, Connect, o)
		o.Update = true
		udp := []string{"172.31.2.11:30840", "172.31.2.12:30840"}
		urls := []string{"wss://172.31.2.11:32035/", "wss://172.31.2.12:32035/"}
		for _, c := range []struct {
			name           string
			set            records.GatewaySettings
			objects        []string
			udp, webSocket []string
			second         string // the first URL of the second gateway
		}{
			{name: "nothing", objects: []string{"Service gateway-a"}, udp: udp},
			{
				name: "a Service", set: records.GatewaySettings{WebSocket: new(true)},
				objects: []string{"Service gateway-a", "Service websocket-a"}, udp: udp, webSocket: urls, second: "wss://172.31.2.12:32036/",
			},
			{
				name: "without UDP", set: records.GatewaySettings{Transport: new(records.WebSocket)},
				objects: []string{"Service websocket-a"}, webSocket: urls, second: "wss://172.31.2.12:32036/",
			},
			{
				name: "another host", set: records.GatewaySettings{EndpointHost: new("gw.example.com")},
				objects: []string{"Service websocket-a"}, webSocket: []string{"wss://gw.example.com:32035/"}, second: "wss://gw.example.com:32036/",
			},
			{
				name: "an Ingress", set: records.GatewaySettings{Ingress: new("in.example.com"), IngressClass: new("x")},
				objects:   []string{"Ingress websocket-a", "Service websocket-a"},
				webSocket: []string{"wss://in.example.com:443/liqonet/a/1"}, second: "wss://in.example.com:443/liqonet/a/2",
			},
			{
				name: "UDP too", set: records.GatewaySettings{Transport: new(records.AutoTransport), EndpointHost: new("")},
				objects: []string{"Ingress websocket-a", "Service gateway-a", "Service websocket-a"}, udp: udp,
				webSocket: []string{"wss://in.example.com:443/liqonet/a/1"}, second: "wss://in.example.com:443/liqonet/a/2",
			},
			{name: "UDP alone", set: records.GatewaySettings{Transport: new(records.UDP)}, objects: []string{"Service gateway-a"}, udp: udp},
			{
				name: "a Service again", set: records.GatewaySettings{Transport: new(records.AutoTransport), WebSocket: new(true)},
				objects: []string{"Service gateway-a", "Service websocket-a"}, udp: udp, webSocket: urls, second: "wss://172.31.2.12:32036/",
			},
		} {
			o.Options = Options{GatewaySettings: c.set}
			checkCarriedOut(t, o)
			tunnels := a.Peering(t).Gateways[0].Tunnels
			assert.Equal(t, c.name+": objects", c.objects, reachable(t, b))
			assert.Equal(t, c.name+": endpoints", c.udp, tunnels[0].Endpoints)
			assert.Equal(t, c.name+": URLs", c.webSocket, tunnels[0].WebSocket)
			if c.second != "" {
				assert.Equal(t, c.name+": first URL of gateway 2", c.second, tunnels[1].WebSocket[0])
			}
			o.Options = Options{}
			checkUnchanged(t, o)
			changesNothing(t, o)
		}
		o.LocalServes, o.ServiceType = new(true), new(records.NodePort)
		fakecluster.Must(t, Connect, o)
		assert.Equal(t, "objects of the previous server", []string(nil), reachable(t, b))
		assert.Equal(t, "objects of the server", []string{"Service gateway-b"}, reachable(t, a))
		o.LocalServes, o.WebSocket = new(false), new(true)
		fakecluster.Must(t, Connect, o)
		fakecluster.Must(t, removal.Disconnect, removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Peer: "b"})
		assert.Equal(t, "objects after disconnect", []string(nil), reachable(t, b))
	})
}

// checkCarriedOut runs a connect, which must change what its plan has: the objects that it removes, too.
func checkCarriedOut(t *testing.T, o ConnectOptions) {
	t.Helper()
	removed := func(changes []kube.Change) (names []string) {
		for _, c := range changes {
			if c.Action == kube.Deleted {
				names = append(names, c.Kind+" "+c.Name)
			}
		}
		slices.Sort(names)
		return names
	}
	var planned []kube.Change
	for _, c := range fakecluster.Must(t, PlanConnect, o).Clusters {
		planned = append(planned, c.Changes...)
	}
	assert.Equal(t, "objects removed, as planned", removed(planned), removed(fakecluster.Must(t, Connect, o).Objects))
}

// TestURLsStay: a client keeps its URLs while its server can have them, whatever the order of the nodes is.
func TestURLsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := connectOptions(a, b)
		o.WebSocket = new(true)
		fakecluster.Must(t, Connect, o)
		want := []string{"wss://172.31.2.12:32035/"}
		a.ChangePeering(t, "b", func(p *records.Peering) { p.Gateways[0].Tunnels[0].WebSocket = want })
		o.Options, o.Update = Options{}, true
		fakecluster.Must(t, Connect, o)
		assert.Equal(t, "URLs", want, tunnelOf(a.Peering(t)).WebSocket)
	})
}

// TestTransportNeedsAddress: a new peering without an address for WebSocket is refused before anything is written; one
// whose record has the address takes the transport alone.
func TestTransportNeedsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := connectOptions(a, b)
		o.Transport = new(records.WebSocket)
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		if !errors.As(err, new(*progress.InputError)) || !strings.Contains(hint.Of(err), "--gw-server-websocket") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
		for _, w := range []*fakecluster.Cluster{a, b} {
			if objects, err := w.List(t.Context(), records.LabelComponent); err != nil || len(objects) > 0 {
				t.Errorf("%d objects, %v", len(objects), err)
			}
		}
		o.Transport, o.WebSocket = nil, new(true)
		fakecluster.Must(t, Connect, o)
		o.Transport, o.WebSocket, o.Update = new(records.WebSocket), nil, true
		fakecluster.Must(t, Connect, o)
		if p := a.Peering(t); len(tunnelOf(p).Endpoints) > 0 || len(tunnelOf(p).WebSocket) == 0 {
			t.Errorf("tunnel %+v", tunnelOf(p))
		}
	})
}

// TestServiceWithoutAddress: the error names the Service whose load balancer has no address.
func TestServiceWithoutAddress(t *testing.T) {
	for name, c := range map[string]struct {
		set  records.GatewaySettings
		want string
	}{
		"UDP":       {records.GatewaySettings{}, "Service liqonet/gateway-a"},
		"WebSocket": {records.GatewaySettings{WebSocket: new(true), Transport: new(records.WebSocket)}, "Service liqonet/websocket-a"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := fakecluster.RunPair(t)
			o := connectOptions(a, b)
			o.Options = Options{GatewaySettings: c.set}
			o.ServiceType = new(records.LoadBalancer)
			_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "no load balancer address") || !strings.Contains(hint.Of(err), "NodePort") {
				t.Errorf("error %v, hint %q", err, hint.Of(err))
			}
		})
	}
}

// TestSilence: an error because no packet arrived names the flags for WebSocket, unless the server has an address for
// it, or the user wants UDP.
func TestSilence(t *testing.T) {
	silent := &records.Status{Time: noon}
	answered := &records.Status{Time: noon, Tunnels: []records.TunnelStatus{{}, {LastEcho: noon}}}
	for name, c := range map[string]struct {
		set  records.GatewaySettings
		last *records.Status
		err  error
		want bool
	}{
		"no packet":        {last: silent, err: context.DeadlineExceeded, want: true},
		"no report":        {err: context.DeadlineExceeded},
		"an answer":        {last: answered, err: context.DeadlineExceeded},
		"a session":        {last: &records.Status{Time: noon, TunnelStatus: records.TunnelStatus{Session: records.Session{Since: noon}}}, err: context.DeadlineExceeded},
		"another error":    {last: silent, err: context.Canceled},
		"UDP, as is set":   {set: records.GatewaySettings{Transport: new(records.UDP)}, last: silent, err: context.DeadlineExceeded},
		"WebSocket exists": {set: records.GatewaySettings{WebSocket: new(true)}, last: silent, err: context.DeadlineExceeded},
	} {
		m := member{settings: c.set}
		if got := hint.Of(m.silence(c.err, c.last)); strings.Contains(got, "--gw-server-websocket") != c.want {
			t.Errorf("%s: hint %q", name, got)
		}
	}
}

// TestConnectWithoutPackets: connect ends with that hint.
func TestConnectWithoutPackets(t *testing.T) {
	for name, set := range map[string]func(*ConnectOptions){"UDP": func(*ConnectOptions) {}, "WebSocket": func(o *ConnectOptions) { o.WebSocket = new(true) }} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := fakecluster.RunPair(t)
			a.SilentTunnels, b.SilentTunnels = true, true
			o := connectOptions(a, b)
			set(&o)
			_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
			if has := strings.Contains(hint.Of(err), "--gw-server-ingress HOST"); err == nil || has != (name == "UDP") {
				t.Errorf("error %v, hint %q", err, hint.Of(err))
			}
		})
	}
}
