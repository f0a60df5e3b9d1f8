package discover

import (
	"fmt"
	"net/netip"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
)

// serviceCIDRs returns the ranges of Service addresses. ServiceCIDR objects come first: only they contain ranges that
// were added later.
func (q *question) serviceCIDRs() (Ranges, error) {
	return q.ranges(rangeQuery{
		what: "service CIDR", flag: "service-cidr", given: q.overrides.ServiceCIDRs, stray: q.strayService,
		unknown: "no ServiceCIDR object or component has it",
		sources: []func() Ranges{
			q.serviceObjects,
			func() Ranges {
				return q.configured("kubeadm ConfigMap", kubeadmConfig, "ClusterConfiguration", "networking", "serviceSubnet")
			},
			func() Ranges {
				return q.argument("--service-cluster-ip-range", "kube-apiserver", "kube-controller-manager")
			},
			func() Ranges { return q.k3s("--service-cidr") },
		},
	})
}

// strayService returns Service default/kubernetes if its address is outside the ranges; "" otherwise.
func (q *question) strayService(prefixes []netip.Prefix) string {
	a, err := netip.ParseAddr(q.inv.kubernetes.Spec.ClusterIP)
	if err != nil || !a.Is4() || cidr.Contains(prefixes, a) {
		return ""
	}
	return fmt.Sprintf("Service default/kubernetes has address %s", a)
}

func (q *question) serviceObjects() Ranges {
	var names, cidrs []string
	for _, o := range q.inv.serviceCIDRs.Items {
		names, cidrs = append(names, o.Name), append(cidrs, o.Spec.CIDRs...)
	}
	return q.parsed("ServiceCIDR object "+strings.Join(names, ", "), cidrs...)
}
