package translate

import (
	"fmt"
	"maps"
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedBy is the value of label endpointslice.kubernetes.io/managed-by on the slices that EndpointSlice returns. The
// EndpointSlice controller of Kubernetes ignores slices of other managers.
const ManagedBy = "liqonet.io"

// EndpointSlice translates an EndpointSlice for the other cluster of a peering. Its function translates the addresses:
// Translator.Export for a slice of this cluster that is sent to the peer, Translator.Import for a slice that comes from
// the peer. The result can be applied unchanged, together with a Service of the same name that has no selector.
//
// Namespace, name, labels, ports, hostnames and conditions are kept. Fields that have a meaning only in the source
// cluster are removed: owners, annotations, nodes, zones, hints and targets. An address without a translation is an
// error.
func EndpointSlice(in *discoveryv1.EndpointSlice, translate func(netip.Addr) (Address, error)) (*discoveryv1.EndpointSlice, error) {
	operand := fmt.Sprintf("EndpointSlice %s/%s", in.Namespace, in.Name)
	if in.AddressType != discoveryv1.AddressTypeIPv4 {
		return nil, fmt.Errorf("translate %s: addresses are of type %q, only IPv4 is supported", operand, in.AddressType)
	}
	if in.Labels[discoveryv1.LabelServiceName] == "" {
		return nil, fmt.Errorf("translate %s: no label %s: it belongs to no Service", operand, discoveryv1.LabelServiceName)
	}
	out := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta:  metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Name, Labels: maps.Clone(in.Labels)},
		AddressType: in.AddressType,
		Ports:       in.DeepCopy().Ports,
	}
	out.Labels[discoveryv1.LabelManagedBy] = ManagedBy
	for i, e := range in.Endpoints {
		there, err := endpoint(e, translate)
		if err != nil {
			return nil, fmt.Errorf("translate %s: endpoint %s: %w", operand, describe(i, e), err)
		}
		out.Endpoints = append(out.Endpoints, there)
	}
	return out, nil
}

func endpoint(in discoveryv1.Endpoint, translate func(netip.Addr) (Address, error)) (discoveryv1.Endpoint, error) {
	out := discoveryv1.Endpoint{Conditions: *in.Conditions.DeepCopy(), Hostname: in.Hostname}
	for _, text := range in.Addresses {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return out, err
		}
		there, err := translate(a)
		if err != nil {
			return out, err
		}
		out.Addresses = append(out.Addresses, there.Translated.String())
	}
	return out, nil
}

// describe identifies an endpoint by its target, or by its index if it has none.
func describe(i int, e discoveryv1.Endpoint) string {
	if e.TargetRef != nil {
		return fmt.Sprintf("%s %q", e.TargetRef.Kind, e.TargetRef.Name)
	}
	return fmt.Sprint(i)
}
