package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
)

func gatewayChecks() []Check {
	return []Check{
		{
			ID: "LQ-GATEWAY-SERVICE", What: "The Services of the WireGuard server have an address, and the load balancer carries UDP, or TCP for WebSocket.",
			Needs: []string{"LQ-OBJECTS-INSTALLED", "LQ-OBJECTS-INTACT"},
			Cause: "The cluster has no load balancers, its quota is used up, or the load balancer refuses UDP.",
			Fix: "kubectl --context CONTEXT -n NAMESPACE describe services. In a cluster without load balancers: " +
				health.Update + " --gw-server-service-type NodePort. With an Ingress controller, add --transport websocket " +
				"--gw-server-ingress HOST instead; if the load balancer refuses UDP: --transport websocket --gw-server-websocket",
			reads: []fact{observe.Objects, observe.Records}, side: (*side).serviceReady,
		},
		{
			ID: "LQ-GATEWAY-VERSION", What: "Helpers on nodes and gateways have the same image.",
			Cause: "An upgrade was interrupted, or an image was changed by hand. Neighbouring releases work together; others may not.",
			Fix:   "liqoctl network init --context CONTEXT --update, then " + health.Update,
			reads: []fact{observe.Elsewhere, observe.Objects}, side: (*side).images,
		},
		{
			ID: "LQ-GATEWAY-POLICY", What: "No NetworkPolicy selects the gateways: liqonet makes none.",
			Cause: "A policy in the namespace of liqonet may drop the overlay (UDP 6091, 6092) or the tunnel (UDP 51840 to 51847; WebSocket: TCP 51880).",
			Fix:   "Allow these ports in the policy that is named, or remove it: kubectl --context CONTEXT -n NAMESPACE get networkpolicies",
			reads: []fact{observe.Policies, observe.Objects}, side: (*side).networkPolicies,
		},
	}
}

func (s *side) gatewaysRun() outcome {
	var hint string
	var seen []string
	for _, id := range s.ids() {
		selector := inventory.GatewaySelector(id)
		if slices.ContainsFunc(s.PodsOf(selector), kube.PodReady) {
			continue
		}
		o := explained(failed("no pod of gateway %d is ready", id.Number), s.PodProblem(id.Name(), selector))
		seen, hint = append(seen, o.observed), cmp.Or(hint, o.hint)
	}
	return judged(Failed, seen).hinted(hint)
}

func (s *side) serviceReady() outcome {
	if s.record == nil || s.record.Role != records.Server {
		return skipped("this cluster is the WireGuard client")
	}
	if s.record.Settings.UsesUDP() {
		if o := s.serviceNamed(records.ServiceName(s.status.Peer)); o.state != Passed || !s.record.Settings.CarriesWebSocket() {
			return o
		}
	}
	return s.serviceNamed(records.WebSocketName(s.status.Peer))
}

func (s *side) serviceNamed(name string) outcome {
	service := s.service(name)
	if service == nil {
		return failed("Service %s is missing", name).hinted(s.filled(health.Update))
	}
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return passed()
	}
	if len(service.Status.LoadBalancer.Ingress) == 0 {
		return failed("Service %s of type LoadBalancer has no address: it is pending", service.Name)
	}
	for _, in := range service.Status.LoadBalancer.Ingress {
		for _, port := range in.Ports {
			if port.Error != nil {
				return failed("the load balancer refuses %s %d: %s", port.Protocol, port.Port, *port.Error)
			}
		}
	}
	return passed()
}

func (s *side) images() outcome {
	set := s.helpers()
	if set == nil || len(set.Spec.Template.Spec.Containers) == 0 {
		return skipped("there are no helpers on nodes")
	}
	want := set.Spec.Template.Spec.Containers[0].Image
	var seen []string
	for _, d := range s.gatewayDeployments() {
		if c := d.Spec.Template.Spec.Containers; len(c) > 0 && c[0].Image != want {
			seen = append(seen, fmt.Sprintf("Deployment %s has image %s, helpers on nodes %s", d.Name, c[0].Image, want))
		}
	}
	return warned(seen)
}

func (s *side) gatewayDeployments() (all []*appsv1.Deployment) {
	for _, d := range kube.In[*appsv1.Deployment](s.Objects) {
		if d.Labels[records.LabelComponent] == records.ComponentGateway && d.Labels[records.LabelPeering] == s.status.Peer {
			all = append(all, d)
		}
	}
	return all
}

func (s *side) networkPolicies() outcome {
	var seen []string
	for _, p := range s.Policies {
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil {
			continue // the API server rejects invalid selectors
		}
		if slices.ContainsFunc(s.gatewayDeployments(), func(d *appsv1.Deployment) bool {
			return selector.Matches(labels.Set(d.Spec.Template.Labels))
		}) {
			seen = append(seen, "NetworkPolicy "+p.Name+" selects the gateways")
		}
	}
	return warned(seen)
}
