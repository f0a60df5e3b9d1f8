package spec

import (
	"fmt"
	"net/netip"
	"slices"
)

// LoadBalancer is what a cluster's cloud does about Services of type LoadBalancer.
type LoadBalancer string

// The clouds.
const (
	NoBalancer LoadBalancer = "none" // Services stay pending
	// Each gets an address of the pool, which the router translates to its NodePorts.
	AddressBalancer LoadBalancer = "addresses"
	NameBalancer    LoadBalancer = "hostnames" // as with addresses, but the Service shows a DNS name of it
)

var loadBalancers = []LoadBalancer{NoBalancer, AddressBalancer, NameBalancer}

// balancerPools holds the pools of all clusters: 198.18.0.0/15 is for tests of networks (RFC 2544).
var balancerPools = netip.MustParsePrefix("198.18.0.0/15")

// balancerPoolBits is the length of a cluster's pool.
const balancerPoolBits = 24

// BalancerPool is the pool of addresses of the nth cluster, from 0.
func BalancerPool(n int) netip.Prefix {
	return netip.PrefixFrom(nth(balancerPools, n<<(32-balancerPoolBits)), balancerPoolBits)
}

// BalancerAddress is the nth address of a pool, from 1.
func BalancerAddress(pool netip.Prefix, n int) netip.Addr { return nth(pool, n) }

// MaxBalancers is how many addresses a pool has.
func MaxBalancers(pool netip.Prefix) int { return hosts(pool) - 2 }

// BalancerName is the DNS name of a Service's load balancer. Domain test is reserved for tests (RFC 6761).
func (c Cluster) BalancerName(namespace, service string) string {
	return service + "." + namespace + "." + c.Name + ".lab.test"
}

func (c Cluster) balancerProblems() []error {
	if slices.Contains(loadBalancers, c.LoadBalancer) {
		return nil
	}
	return []error{fmt.Errorf("loadBalancer %q: want one of %v", c.LoadBalancer, loadBalancers)}
}
