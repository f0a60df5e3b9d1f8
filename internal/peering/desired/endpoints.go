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
	i := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == t.PortName() })
	if i < 0 {
		return nil, "the Service has no port " + t.PortName()
	}
	port := svc.Spec.Ports[i].Port
	if svc.Spec.Type == corev1.ServiceTypeNodePort {
		port = svc.Spec.Ports[i].NodePort
	}
	s = s.Complete()
	if *s.EndpointPort != 0 {
		requested, err := t.Port(*s.EndpointPort)
		if err != nil {
			return nil, err.Error()
		}
		port = int32(requested)
	}
	if port == 0 {
		return nil, "no node port yet"
	}
	hosts, missing := serviceHosts(svc, nodes)
	if *s.EndpointHost != "" {
		hosts, missing = []string{*s.EndpointHost}, ""
	}
	for i := range min(len(hosts), offeredEndpoints) {
		// Each tunnel begins with another node, so that the loss of a node does not interrupt all tunnels.
		host := hosts[(i+t.Server+t.Client-2)%len(hosts)]
		endpoints = append(endpoints, net.JoinHostPort(host, strconv.Itoa(int(port))))
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
	all := slices.Clone(nodes)
	for i := range all {
		all[i].Ready = true
	}
	for _, endpoint := range have {
		one := func(n discover.Node) bool {
			possible, _ := serviceEndpoints(svc, t, []discover.Node{n}, s)
			return slices.Contains(possible, endpoint)
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

// EndpointSummary lists the hosts and ports of endpoints, each once, such as "192.0.2.1, 192.0.2.2, UDP 30840, 30841".
func EndpointSummary(endpoints []string) string {
	var hosts, ports []string
	for _, endpoint := range endpoints {
		host, port, _ := net.SplitHostPort(endpoint)
		hosts, ports = append(hosts, host), append(ports, port)
	}
	return strings.Join(unique(hosts), ", ") + ", UDP " + strings.Join(unique(ports), ", ")
}
