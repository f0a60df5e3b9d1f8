package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIServers returns the IPv4 addresses at which the cluster's API servers are known: behind Service
// default/kubernetes, and where this client speaks to one, unless that is a name.
func (c *Cluster) APIServers(ctx context.Context) ([]netip.Addr, error) {
	list, err := c.Kube.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return nil, fmt.Errorf("list the EndpointSlices of the API server of cluster %q: %w", c.Context, err)
	}
	var texts []string
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			texts = append(texts, e.Addresses...)
		}
	}
	if u, err := url.Parse(c.host); err == nil {
		texts = append(texts, u.Hostname())
	}
	return addresses(texts), nil
}
