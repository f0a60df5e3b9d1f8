package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"

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

// APIServers returns the IPv4 addresses at which the cluster's API servers are known: behind Service
// default/kubernetes, and where this client speaks to one, unless that is a name.
func (c *Cluster) APIServers(ctx context.Context) ([]netip.Addr, error) {
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
	if u, err := url.Parse(c.host); err == nil {
		texts = append(texts, u.Hostname())
	}
	return addresses(texts), nil
}
