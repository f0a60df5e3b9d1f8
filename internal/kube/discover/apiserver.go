package discover

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

	"liqonet.io/liqonet/internal/kube"
)

// apiServerSlice is the EndpointSlice that API servers maintain for Service default/kubernetes.
const apiServerSlice = "kubernetes"

// APIServerPermissions are the permissions that APIServers requires.
func APIServerPermissions() []kube.Permission {
	return []kube.Permission{{
		Verb: "get", Group: discoveryv1.GroupName, Resource: "endpointslices", Namespace: corev1.NamespaceDefault, Name: apiServerSlice,
	}}
}

// lookupTimeout limits the DNS lookup of an API server's name. It is short because the client has resolved the name
// before.
const lookupTimeout = 2 * time.Second

// APIServers returns the IPv4 addresses of the cluster's API servers: the endpoints of Service default/kubernetes, and
// the address in the kubeconfig. A name in the kubeconfig is resolved on this machine, which may yield other addresses
// than in the cluster. A name that does not resolve is ignored.
func APIServers(ctx context.Context, c *kube.Cluster) ([]netip.Addr, error) {
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

// hostAddresses returns the addresses of the API server in the kubeconfig.
func hostAddresses(ctx context.Context, c *kube.Cluster) []netip.Addr {
	u, err := url.Parse(c.Host)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	if a := addresses(u.Hostname()); len(a) > 0 {
		return a
	}
	lookup := c.Lookup
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
