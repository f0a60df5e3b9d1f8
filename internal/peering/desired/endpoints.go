package desired

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/setting"
)

// offeredEndpoints limits the number of nodes in a client's record. Two are sufficient; more help while nodes are
// replaced.
const offeredEndpoints = 16

// serviceEndpoints returns the addresses, host:port, at which a tunnel reaches a server's Service from outside the
// cluster, or what is missing. Those that the user has set replace those of the Service. nodes are used for Services of
// type NodePort: each node with its external address if it has one.
func serviceEndpoints(svc *corev1.Service, t records.TunnelID, nodes []discover.Node, s records.GatewaySettings) (endpoints []string, missing string) {
	var requested uint16
	if first := *s.Complete().EndpointPort; first != 0 {
		var err error
		if requested, err = t.Port(first); err != nil {
			return nil, err.Error()
		}
	}
	// Each tunnel begins with another node, so that the loss of a node does not interrupt all tunnels.
	return portEndpoints(svc, t.PortName(), requested, t.Server+t.Client-2, nodes, s)
}

// webSocketURLs returns the URLs at which a server's Service for WebSocket is reached, as serviceEndpoints does.
func webSocketURLs(svc *corev1.Service, gateway int, nodes []discover.Node, s records.GatewaySettings) (urls []string, missing string) {
	endpoints, missing := portEndpoints(svc, records.WebSocketPortName(gateway), 0, gateway-1, nodes, s)
	for _, e := range endpoints {
		urls = append(urls, "wss://"+e+"/")
	}
	return urls, missing
}

// portEndpoints returns the addresses of a port of a Service, beginning with that of the node with index begin. A
// requested port (0: none) replaces that of the Service.
func portEndpoints(svc *corev1.Service, name string, requested uint16, begin int, nodes []discover.Node, s records.GatewaySettings) (endpoints []string, missing string) {
	i := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == name })
	if i < 0 {
		return nil, "the Service has no port " + name
	}
	port := svc.Spec.Ports[i].Port
	if svc.Spec.Type == corev1.ServiceTypeNodePort {
		port = svc.Spec.Ports[i].NodePort
	}
	if port = cmp.Or(int32(requested), port); port == 0 {
		return nil, "no node port yet"
	}
	hosts, missing := serviceHosts(svc, nodes)
	if host := *s.Complete().EndpointHost; host != "" {
		hosts, missing = []string{host}, ""
	}
	for i := range min(len(hosts), offeredEndpoints) {
		endpoints = append(endpoints, net.JoinHostPort(hosts[(i+begin)%len(hosts)], strconv.Itoa(int(port))))
	}
	return endpoints, missing
}

// serviceHosts returns the addresses or names of a Service, or what is missing.
func serviceHosts(svc *corev1.Service, nodes []discover.Node) (hosts []string, missing string) {
	switch svc.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		for _, in := range svc.Status.LoadBalancer.Ingress {
			if in.IP != "" && (usable(in.IP) || in.Hostname == "") {
				hosts = append(hosts, in.IP)
			} else if in.Hostname != "" {
				hosts = append(hosts, in.Hostname)
			}
		}
		missing = "no load balancer address yet"
	case corev1.ServiceTypeNodePort:
		for _, n := range nodes {
			if a, ok := clientAddress(n); ok {
				hosts = append(hosts, a.String())
			}
		}
		missing = "no node is Ready and has an address"
	default:
		if ip := svc.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
			hosts = append(hosts, ip)
		}
		missing = "no cluster IP yet"
	}
	// A record with another one, such as a loopback address, would be refused as a whole.
	good := slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return !usable(host) })
	switch {
	case len(good) > 0:
		return good, ""
	case len(hosts) > 0:
		return nil, fmt.Sprintf("%s is no address or name at which a peer reaches it", strings.Join(hosts, ", "))
	}
	return nil, missing
}

// usable reports whether a record may have a host in an endpoint.
func usable(host string) bool {
	_, err := setting.HostOrAny(host)
	return err == nil
}

// clientAddress returns the address of a Ready node for clients in other clusters: external if it has one, else
// internal.
func clientAddress(n discover.Node) (netip.Addr, bool) {
	for _, addresses := range [][]netip.Addr{n.External, n.Internal} {
		if n.Ready && len(addresses) > 0 {
			return addresses[0], true
		}
	}
	return netip.Addr{}, false
}

// endpointsUsable reports whether a client can keep its endpoints of a tunnel: the Service could have each of them,
// whether or not its node is currently Ready.
func endpointsUsable(have []string, svc *corev1.Service, t records.TunnelID, nodes []discover.Node, s records.GatewaySettings) bool {
	return usableAt(have, nodes, func(nodes []discover.Node) []string {
		possible, _ := serviceEndpoints(svc, t, nodes, s)
		return possible
	})
}

// usableAt reports whether possible returns, for nodes that are Ready, each of the endpoints that a client has.
func usableAt(have []string, nodes []discover.Node, possible func([]discover.Node) []string) bool {
	all := slices.Clone(nodes)
	for i := range all {
		all[i].Ready = true
	}
	for _, endpoint := range have {
		one := func(n discover.Node) bool {
			return slices.Contains(possible([]discover.Node{n}), endpoint)
		}
		// A Service that is not of type NodePort has the same endpoints for each node.
		if !slices.ContainsFunc(all, one) {
			return false
		}
	}
	return len(have) > 0
}

// EndpointsAt returns the endpoints of all tunnels, or what is missing. The client keeps the endpoints of a tunnel
// while all of them are usable.
func (h Half) EndpointsAt(svc *corev1.Service) (all map[records.TunnelID][]string, missing string) {
	nodes := h.Nodes
	all = make(map[records.TunnelID][]string)
	for i := range h.Gateways() {
		for j := range h.PeerGateways() {
			t := records.TunnelID{Server: i + 1, Client: j + 1}
			endpoints, lacks := serviceEndpoints(svc, t, nodes, h.Settings)
			missing = cmp.Or(missing, lacks)
			if have := h.Peer.Recorded.EndpointsOf(t); endpointsUsable(have, svc, t, nodes, h.Settings) {
				endpoints = have
			}
			all[t] = endpoints
		}
	}
	return all, missing
}

// WebSocketAt returns the URLs of all gateways, or what is missing. svc is nil if an Ingress leads to them. The client
// keeps the URLs of a gateway while all of them are usable.
func (h Half) WebSocketAt(svc *corev1.Service) (all [][]string, missing string) {
	for gateway := 1; gateway <= h.Gateways(); gateway++ {
		if host := *h.Settings.Complete().Ingress; host != "" {
			all = append(all, []string{"wss://" + host + ":443" + records.WebSocketPath(h.Peering, gateway)})
			continue
		}
		urls, lacks := webSocketURLs(svc, gateway, h.Nodes, h.Settings)
		missing = cmp.Or(missing, lacks)
		have := h.Peer.Recorded.WebSocketOf(gateway)
		if usableAt(have, h.Nodes, func(nodes []discover.Node) []string {
			possible, _ := webSocketURLs(svc, gateway, nodes, h.Settings)
			return possible
		}) {
			urls = have
		}
		all = append(all, urls)
	}
	return all, missing
}

// EndpointSummary lists the hosts and ports of endpoints, each once, such as "192.0.2.1, 192.0.2.2, UDP 30840, 30841".
func EndpointSummary(endpoints []string) string {
	var hosts, ports []string
	for _, endpoint := range endpoints {
		host, port, _ := net.SplitHostPort(endpoint)
		hosts, ports = append(hosts, host), append(ports, port)
	}
	return strings.Join(unique(hosts), ", ") + ", UDP " + strings.Join(unique(ports), ", ")
}
