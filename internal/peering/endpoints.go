package peering

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/steps"
)

// maxEndpoints bounds how many nodes a client is told of. Any two would do; more help while nodes are replaced.
const maxEndpoints = 16

// endpointWishes are what the user says of the endpoint instead of the server's Service.
type endpointWishes struct {
	address string // "": the Service's
	port    uint16 // 0: the Service's
}

// serviceEndpoints returns the addresses, host:port, at which a server's Service can be reached from outside, or
// what is still missing. Nodes count for Services of type NodePort: each with its external address if it has one.
func serviceEndpoints(svc *corev1.Service, nodes []cluster.Node, wish endpointWishes) (endpoints []string, missing string) {
	if len(svc.Spec.Ports) == 0 {
		return nil, "the Service has no port"
	}
	port := svc.Spec.Ports[0].Port
	if svc.Spec.Type == corev1.ServiceTypeNodePort {
		port = svc.Spec.Ports[0].NodePort
	}
	if wish.port != 0 {
		port = int32(wish.port)
	}
	if port == 0 {
		return nil, "no node port yet"
	}
	hosts, missing := serviceHosts(svc, nodes)
	if wish.address != "" {
		hosts, missing = []string{wish.address}, ""
	}
	for _, host := range hosts[:min(len(hosts), maxEndpoints)] {
		endpoints = append(endpoints, net.JoinHostPort(host, strconv.Itoa(int(port))))
	}
	return endpoints, missing
}

// serviceHosts returns the addresses or names of a Service, or what is missing.
func serviceHosts(svc *corev1.Service, nodes []cluster.Node) (hosts []string, missing string) {
	switch svc.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		for _, in := range svc.Status.LoadBalancer.Ingress {
			if host := in.IP; host != "" {
				hosts = append(hosts, host)
			} else if in.Hostname != "" {
				hosts = append(hosts, in.Hostname)
			}
		}
		missing = "no load balancer address yet"
	case corev1.ServiceTypeNodePort:
		for _, n := range nodes {
			if a, ok := reachableAt(n); ok {
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
	if len(hosts) > 0 {
		return hosts, ""
	}
	return nil, missing
}

// reachableAt is the address of a Ready node that others should use.
func reachableAt(n cluster.Node) (netip.Addr, bool) {
	for _, addresses := range [][]netip.Addr{n.External, n.Internal} {
		if n.Ready && len(addresses) > 0 {
			return addresses[0], true
		}
	}
	return netip.Addr{}, false
}

// stillGood reports whether a client can go on with the endpoints that it has: each is one of those that the
// Service could have, whether or not its node is Ready at the moment.
func stillGood(have []string, svc *corev1.Service, nodes []cluster.Node, wish endpointWishes) bool {
	all := slices.Clone(nodes)
	for i := range all {
		all[i].Ready = true
	}
	for _, e := range have {
		one := func(n cluster.Node) bool {
			possible, _ := serviceEndpoints(svc, []cluster.Node{n}, wish)
			return slices.Contains(possible, e)
		}
		// A Service without regard to nodes gives the same answer for each.
		if !slices.ContainsFunc(all, one) {
			return false
		}
	}
	return len(have) > 0
}

// awaitEndpoints waits until the server's Service can be reached. The endpoints that the client has stay while all of them
// are good.
func (e *end) awaitEndpoints(ctx context.Context) error {
	server, name := e.peer, records.GatewayID{Peering: e.peer.peering, Number: 1}.Name()
	wish := endpointWishes{address: e.wishes.ClientAddress, port: e.wishes.ClientPort}
	what := fmt.Sprintf("the endpoint of Service %s/%s", server.cluster.Namespace, name)
	err := server.cluster.FailFast(ctx, inventory.GatewaySelector(server.peering), func(ctx context.Context) error {
		return cluster.Wait(ctx, server.cluster, cluster.Named(name), what, func(all []*corev1.Service) (missing string, err error) {
			if len(all) == 0 {
				return "it does not exist", nil
			}
			e.endpoints, missing = serviceEndpoints(all[0], server.discovery.Nodes, wish)
			if e.have != nil && stillGood(e.have.Endpoints(), all[0], server.discovery.Nodes, wish) {
				e.endpoints = e.have.Endpoints()
			}
			return missing, nil
		})
	})
	return steps.Later(hint.With(err, "if the cluster has no load balancers: --gw-server-service-type NodePort"))
}
