package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	ingress = networkingv1.PolicyTypeIngress
	egress  = networkingv1.PolicyTypeEgress
)

// podPolicies is a pod with the NetworkPolicies of its namespace. In the zero value, both are unknown.
type podPolicies struct {
	pod      *corev1.Pod
	policies []networkingv1.NetworkPolicy
}

// blocks returns the reason for which the policies block packets between a pod and an address of the peer; "" if they
// do not, or none is known. An address of the peer belongs to no pod of this cluster, so only ipBlocks can allow it.
func (p podPolicies) blocks(direction networkingv1.PolicyType, peer netip.Addr, f Flow) string {
	var selecting []string
	for _, policy := range p.policies {
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil || !selector.Matches(labels.Set(p.pod.Labels)) || !covers(policy.Spec, direction) {
			continue
		}
		if p.allows(policy.Spec, direction, peer, f) {
			return ""
		}
		selecting = append(selecting, policy.Name)
	}
	if len(selecting) == 0 {
		return ""
	}
	return fmt.Sprintf("NetworkPolicy %s of namespace %s selects pod %s, and none allows %s %s (%s)",
		strings.Join(selecting, ", "), p.pod.Namespace, p.pod.Name, strings.ToLower(string(direction)), peer, f)
}

// String returns the flow as text.
func (f Flow) String() string {
	if f.Port == 0 || f.Protocol == ICMP {
		return string(f.Protocol)
	}
	return fmt.Sprintf("%s port %d", f.Protocol, f.Port)
}

// covers reports whether a policy applies to a direction.
func covers(s networkingv1.NetworkPolicySpec, direction networkingv1.PolicyType) bool {
	if len(s.PolicyTypes) > 0 {
		return slices.Contains(s.PolicyTypes, direction)
	}
	return direction == ingress || len(s.Egress) > 0
}

func (p podPolicies) allows(s networkingv1.NetworkPolicySpec, direction networkingv1.PolicyType, peer netip.Addr, f Flow) bool {
	if direction == ingress {
		return slices.ContainsFunc(s.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
			return contains(r.From, peer) && p.open(r.Ports, f)
		})
	}
	return slices.ContainsFunc(s.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
		return contains(r.To, peer) && p.open(r.Ports, f)
	})
}

// contains reports whether peers of a policy include an address. An empty list includes all.
func contains(peers []networkingv1.NetworkPolicyPeer, a netip.Addr) bool {
	within := func(text string) bool {
		block, err := netip.ParsePrefix(text)
		return err == nil && block.Contains(a)
	}
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.IPBlock != nil && within(p.IPBlock.CIDR) && !slices.ContainsFunc(p.IPBlock.Except, within)
	})
}

// open reports whether ports of a policy include the port of a flow. An empty list includes all. An unknown port is
// included.
func (p podPolicies) open(ports []networkingv1.NetworkPolicyPort, f Flow) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(port networkingv1.NetworkPolicyPort) bool {
		protocol := corev1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		if Protocol(strings.ToLower(string(protocol))) != f.Protocol {
			return false
		}
		if port.Port == nil || f.Port == 0 {
			return true
		}
		first := p.number(*port.Port, protocol)
		last := first
		if port.EndPort != nil {
			last = *port.EndPort
		}
		return int32(f.Port) >= first && int32(f.Port) <= last
	})
}

// number returns the number of a port that may be given by its name in the pod; 0 if the pod has no such name.
func (p podPolicies) number(port intstr.IntOrString, protocol corev1.Protocol) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, c := range p.pod.Spec.Containers {
		for _, own := range c.Ports {
			if own.Name == port.StrVal && (own.Protocol == protocol || own.Protocol == "") {
				return own.ContainerPort
			}
		}
	}
	return 0
}
