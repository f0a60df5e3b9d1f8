package supervisor

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"time"

	kube "liqonet.io/liqonet/lab/cluster"
	"liqonet.io/liqonet/lab/spec"
	"liqonet.io/liqonet/lab/underlay"
)

// balanceInterval is between two looks at a cluster's Services and nodes.
const balanceInterval = 500 * time.Millisecond

// checkTimeout bounds a health check of a node.
const checkTimeout = time.Second

// balance serves a cluster's Services of type LoadBalancer until ctx is done.
func (s *Supervisor) balance(ctx context.Context, c *cluster) {
	if c.LoadBalancer == spec.NoBalancer {
		return
	}
	var have []underlay.Balance
	for tick := time.Tick(balanceInterval); ; {
		rules, err := s.balanceOnce(ctx, c, have)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			slog.Warn("load balancers", "cluster", c.Name(), "cause", err)
		default:
			have = rules
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// balanceOnce brings the router's rules in line with the Services, and then gives addresses to those that have none.
func (s *Supervisor) balanceOnce(ctx context.Context, c *cluster, have []underlay.Balance) ([]underlay.Balance, error) {
	services, err := c.api.BalancedServices(ctx)
	if err != nil {
		return nil, err
	}
	ready, err := c.api.ReadyNodes(ctx)
	if err != nil {
		return nil, err
	}
	byName := c.LoadBalancer == spec.NameBalancer
	for i, service := range services {
		if byName {
			services[i].Address, _ = s.names.Lookup(service.Hostname)
		}
	}
	addresses := assign(services, s.balancerPool(c))
	var rules []underlay.Balance
	for i, service := range services {
		nodes := s.targets(ctx, c, service, ready)
		if !addresses[i].IsValid() || len(nodes) == 0 {
			continue
		}
		for _, p := range service.Ports {
			rules = append(rules, underlay.Balance{Address: addresses[i], Protocol: p.Protocol, Port: p.Port, Nodes: nodes, NodePort: p.NodePort})
		}
	}
	if !reflect.DeepEqual(rules, have) {
		if err := s.underlay.SetBalancers(c.Cluster, rules); err != nil {
			return nil, err
		}
	}
	names := make(map[string]netip.Addr)
	for i, service := range services {
		if byName && addresses[i].IsValid() {
			names[c.BalancerName(service.Namespace, service.Name)] = addresses[i]
		}
	}
	s.names.Set(c.Name(), names)
	return rules, c.announce(ctx, services, addresses)
}

// announce writes the addresses of load balancers into the status of their Services, if it has others.
func (c *cluster) announce(ctx context.Context, services []kube.BalancedService, addresses []netip.Addr) error {
	for i, service := range services {
		name := ""
		if c.LoadBalancer == spec.NameBalancer {
			name = c.BalancerName(service.Namespace, service.Name)
		}
		if !addresses[i].IsValid() || addresses[i] == service.Address && name == service.Hostname {
			continue
		}
		if err := c.api.SetBalancer(ctx, service, addresses[i], name); err != nil {
			return err
		}
	}
	return nil
}

// targets are the addresses of the nodes to which a Service's connections go: Ready ones, and where the Service has
// health checks those that pass.
func (s *Supervisor) targets(ctx context.Context, c *cluster, service kube.BalancedService, ready map[string]time.Time) []netip.Addr {
	var all []netip.Addr
	for _, n := range c.list() {
		if _, ok := ready[n.Name()]; !ok {
			continue
		}
		if service.HealthCheck != 0 && s.check(ctx, netip.AddrPortFrom(n.Address(), service.HealthCheck)) != nil {
			continue
		}
		all = append(all, n.Address())
	}
	return all
}

// check asks from the router.
func (s *Supervisor) check(ctx context.Context, address netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return kube.Healthy(ctx, func(ctx context.Context) (net.Conn, error) { return s.underlay.Router.Dial(ctx, address) }, address)
}

func (s *Supervisor) balancerPool(c *cluster) netip.Prefix {
	return spec.BalancerPool(slices.Index(s.clusters, c))
}

// assign returns an address of the pool for each Service: its present address, else the requested one, else the first
// free one. A Service that requests an address that is outside the pool, or taken, gets none.
func assign(services []kube.BalancedService, pool netip.Prefix) []netip.Addr {
	addresses := make([]netip.Addr, len(services))
	taken := make(map[netip.Addr]bool)
	take := func(i int, a netip.Addr) {
		if !taken[a] && pool.Contains(a) {
			addresses[i], taken[a] = a, true
		}
	}
	for i, s := range services {
		if s.Address.IsValid() && (!s.Wanted.IsValid() || s.Wanted == s.Address) {
			take(i, s.Address)
		}
	}
	for i, s := range services {
		if s.Wanted.IsValid() && !addresses[i].IsValid() {
			take(i, s.Wanted)
		}
	}
	for i, s := range services {
		for n := 1; !s.Wanted.IsValid() && !addresses[i].IsValid() && n <= spec.MaxBalancers(pool); n++ {
			take(i, spec.BalancerAddress(pool, n))
		}
	}
	return addresses
}
