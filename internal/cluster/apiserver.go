package cluster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiServerSlice is the EndpointSlice that API servers keep of themselves, for the Service of the same name.
const apiServerSlice = "kubernetes"

// APIServerPermissions are what APIServers cannot do without.
func APIServerPermissions() []Permission {
	return []Permission{{
		Verb: "get", Group: discoveryv1.GroupName, Resource: "endpointslices", Namespace: corev1.NamespaceDefault, Name: apiServerSlice,
	}}
}

// lookupTimeout bounds how long the name of an API server is looked up: the client has done so before.
const lookupTimeout = 2 * time.Second

// APIServers returns the IPv4 addresses at which the cluster's API servers are known: behind Service
// default/kubernetes, and where this client speaks to one. A name in the kubeconfig is resolved here, which may give
// other addresses than in the cluster; one that cannot be resolved counts as nothing.
func APIServers(ctx context.Context, c *Cluster) ([]netip.Addr, error) {
	var texts []string
	slice, err := c.Kube.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault).Get(ctx, apiServerSlice, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the addresses of the API server of cluster %q: %w", c.Context, err)
	}
	if err == nil {
		for _, e := range slice.Endpoints {
			texts = append(texts, e.Addresses...)
		}
	}
	all := addresses(texts...)
	for _, a := range hostAddresses(ctx, c) {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all, nil
}

// hostAddresses are those of the API server in the kubeconfig.
func hostAddresses(ctx context.Context, c *Cluster) []netip.Addr {
	u, err := url.Parse(c.host)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	if a := addresses(u.Hostname()); len(a) > 0 {
		return a
	}
	lookup := c.lookup
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := lookup(ctx, "ip4", u.Hostname())
	if err != nil {
		return nil
	}
	for i, a := range found {
		found[i] = a.Unmap()
	}
	return found
}
