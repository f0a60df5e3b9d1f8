package cluster

import (
	"net/netip"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
)

// serviceCIDRs returns the ranges of Service addresses. ServiceCIDR objects come first: they alone tell ranges
// that were added later.
func (q *question) serviceCIDRs() (Ranges, error) {
	const what, flag = "service CIDR", "service-cidr"
	kubernetes, err := netip.ParseAddr(q.inv.kubernetesIP)
	check := err == nil && kubernetes.Is4()
	if given := q.overrides.ServiceCIDRs; given != nil {
		r := Ranges{Prefixes: cidr.Merged(given), Source: "--" + q.overrides.FlagPrefix + flag}
		if check && !cidr.Contains(r.Prefixes, kubernetes) {
			q.note("Service default/kubernetes has address %s, outside %v", kubernetes, r.Prefixes)
		}
		return r, nil
	}
	for _, ask := range []func() Ranges{q.serviceObjects, q.kubeadmServices, q.apiServerServices, q.k3sServices} {
		r := ask()
		if len(r.Prefixes) == 0 {
			continue
		}
		if check && !cidr.Contains(r.Prefixes, kubernetes) {
			return Ranges{}, q.missing(what, flag, "%v (%s), but Service default/kubernetes has address %s", r.Prefixes, r.Source, kubernetes)
		}
		return r, nil
	}
	return Ranges{}, q.missing(what, flag, "no ServiceCIDR object or component tells it")
}

func (q *question) serviceObjects() Ranges {
	names := make([]string, len(q.inv.serviceObjects))
	var cidrs []string
	for i, o := range q.inv.serviceObjects {
		names[i], cidrs = o.name, append(cidrs, o.cidrs...)
	}
	source := "ServiceCIDR object " + strings.Join(names, ", ")
	return Ranges{Prefixes: q.parse(source, cidrs...), Source: source}
}

func (q *question) kubeadmServices() Ranges {
	return q.kubeadm(func(n kubeadmNetworking) string { return n.ServiceSubnet })
}

func (q *question) apiServerServices() Ranges {
	for _, component := range []string{"kube-apiserver", "kube-controller-manager"} {
		if r := q.argument(component, "--service-cluster-ip-range"); len(r.Prefixes) > 0 {
			return r
		}
	}
	return Ranges{}
}

func (q *question) k3sServices() Ranges { return q.k3s("--service-cidr") }
