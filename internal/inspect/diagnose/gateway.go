package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
)

func gatewayChecks() []Check {
	return []Check{
		{
			ID: "LQ-GATEWAY-RUNNING", Layer: Gateway, What: "The pod of every gateway of the peering is ready.",
			Needs: []string{"LQ-OBJECTS-INSTALLED", "LQ-OBJECTS-DAMAGED", "LQ-OBJECTS-INTACT", "LQ-OBJECTS-KEYS", "LQ-NODES-READY"},
			Cause: "A quota, admission or missing room on nodes keeps the pod from being created or scheduled, the image cannot be pulled, or the pod crashes.",
			Fix:   "kubectl --context CONTEXT -n NAMESPACE get pods,events; kubectl --context CONTEXT -n NAMESPACE describe deployment gateway-PEER",
			reads: []fact{peerings, observe.Pods}, side: (*side).gatewaysRun,
		},
		{
			ID: "LQ-GATEWAY-SERVICE", Layer: Gateway, What: "The Service of the WireGuard server has an address, and the load balancer carries UDP.",
			Needs: []string{"LQ-OBJECTS-INSTALLED"},
			Cause: "The cluster has no load balancers, its quota is used up, or the load balancer refuses UDP.",
			Fix: "kubectl --context CONTEXT -n NAMESPACE describe service gateway-PEER. In a cluster without load balancers: " +
				update + " --gw-server-service-type NodePort",
			reads: []fact{observe.Objects, observe.Records}, side: (*side).serviceReady,
		},
		{
			ID: "LQ-GATEWAY-RECORDS", Layer: Gateway, What: "What the gateway writes can be read: its ConfigMaps gateway-PEER and status-PEER.",
			Needs: []string{"LQ-GATEWAY-RUNNING"},
			Cause: "The ConfigMap was edited by hand or by another program, and the gateway, which writes it anew, has not done so yet.",
			Fix:   "Repeat the command after ten seconds. If it goes on: kubectl --context CONTEXT -n NAMESPACE rollout restart deployment/gateway-PEER",
		},
		{
			ID: "LQ-GATEWAY-REPORT", Layer: Gateway, What: "Every gateway reports in time.",
			Needs: []string{"LQ-GATEWAY-RUNNING", "LQ-GATEWAY-RECORDS", "LQ-NODES-HELPER"},
			Cause: "The gateway hangs, its node is lost, or it does not reach the API server.",
			Fix:   "kubectl --context CONTEXT -n NAMESPACE logs deployment/gateway-PEER; kubectl --context CONTEXT -n NAMESPACE rollout restart deployment/gateway-PEER",
		},
		{
			ID: "LQ-GATEWAY-APPLIED", Layer: Gateway, What: "The kernels of the gateways are as the records ask.",
			Needs: []string{"LQ-GATEWAY-REPORT"},
			Cause: "The record has a value that the kernel refuses, a name of the server cannot be resolved, or another program locks the kernel's tables.",
			Fix:   "kubectl --context CONTEXT -n NAMESPACE logs deployment/gateway-PEER",
		},
		{
			ID: "LQ-GATEWAY-VERSION", Layer: Gateway, What: "Helpers on nodes and gateways have the same image.",
			Cause: "An upgrade was interrupted, or an image was changed by hand. Neighbouring releases work together; others may not.",
			Fix:   "liqoctl network init --context CONTEXT --update, then " + update,
			reads: []fact{observe.Elsewhere, observe.Objects}, side: (*side).images,
		},
		{
			ID: "LQ-GATEWAY-POLICY", Layer: Gateway, What: "No NetworkPolicy selects the gateways: liqonet makes none.",
			Cause: "A policy in the namespace of liqonet may drop the overlay (UDP 6091, 6092) or the tunnel (UDP 51840).",
			Fix:   "Allow these ports in the policy that is named, or remove it: kubectl --context CONTEXT -n NAMESPACE get networkpolicies",
			reads: []fact{observe.Policies, observe.Objects}, side: (*side).networkPolicies,
		},
	}
}

func (s *side) gatewaysRun() outcome {
	var all outcome
	var seen []string
	for _, id := range s.ids() {
		selector, err := labels.Parse(inventory.GatewaySelector(id))
		if err != nil {
			return skipped(err.Error())
		}
		if slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool { return selector.Matches(labels.Set(p.Labels)) && podReady(p) }) {
			continue
		}
		o := explained(failed("no pod of gateway %d is ready", id.Number), s.PodProblem(id.Name(), inventory.GatewaySelector(id)))
		seen, all.hint = append(seen, o.observed), cmp.Or(all.hint, o.hint)
	}
	return judged(Failed, seen).hinted(all.hint)
}

func (s *side) serviceReady() outcome {
	if s.record == nil || s.record.Role != records.Server {
		return skipped("this cluster is the WireGuard client")
	}
	i := slices.IndexFunc(s.services(), func(o *corev1.Service) bool { return o.Name == records.ServiceName(s.status.Peer) })
	if i < 0 {
		return failed("Service %s is missing", records.ServiceName(s.status.Peer)).advise(update)
	}
	service := s.services()[i]
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
