package translate

import (
	"fmt"
	"maps"
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedBy is the value of label endpointslice.kubernetes.io/managed-by on slices that EndpointSlice made. The
// controller of a cluster leaves slices alone that are not its own.
const ManagedBy = "liqonet.io"

// EndpointSlice makes of an EndpointSlice of one cluster the one that the other cluster of a peering needs, with
// addresses as the function translates them: Translator.Export for a slice of this cluster that goes to the peer,
// Translator.Import for a slice of the peer that comes here. The result can be applied as it is, beside a Service
// of the same name without a selector.
//
// Namespace, name, labels, ports, hostnames and conditions stay. What only has a meaning where the slice comes
// from goes: owners, annotations, nodes, zones, hints and targets. One address without a translation is an error.
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

// describe names an endpoint by what it leads to, else by its place.
func describe(i int, e discoveryv1.Endpoint) string {
	if e.TargetRef != nil {
		return fmt.Sprintf("%s %q", e.TargetRef.Kind, e.TargetRef.Name)
	}
	return fmt.Sprint(i)
}
