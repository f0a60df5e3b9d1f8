package diagnose

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
)

// reported reports whether a gateway has reported lately.
func (s *side) reported() bool {
	return slices.ContainsFunc(s.reports, func(r *records.Status) bool { return r != nil })
}

// found returns the state with the findings of a code; passed if there are none.
func (s *side) found(state State, code health.Code) outcome {
	findings := health.With(s.status.Findings, code)
	var seen []string
	if LayerOf(string(code)) == Tunnel {
		for _, f := range findings {
			seen = append(seen, fmt.Sprintf("%s: %s", s.tunnelName(f.Subject.Gateway, f.Subject.Tunnel), f.Text))
		}
		return judged(state, seen)
	}
	for i, f := range findings { // a note too: what it follows from fails another check
		findings[i].Level = max(f.Level, health.Warning)
	}
	if len(findings) > 0 {
		seen = append(seen, health.Reason(findings, len(s.status.Gateways)))
	}
	return judged(state, seen)
}

// foundByGateways returns a function that warns of findings which need a report.
func foundByGateways(code health.Code) func(*side) outcome {
	return func(s *side) outcome {
		if !s.reported() {
			return skipped("no gateway has reported lately")
		}
		return s.found(Warning, code)
	}
}

func tunnelChecks() []Check {
	return []Check{
		{
			ID: "LQ-TUNNEL-KEYS", What: "Each gateway's public key is the one that the other cluster's record has, and both have the same preshared key.",
			Needs: []string{"LQ-OBJECTS-DAMAGED", "LQ-OBJECTS-INTACT", "LQ-OBJECTS-KEYS"},
			Cause: "A Secret was edited or restored from a backup, or a connect was interrupted. Packets cross until the pod of the gateway that is named restarts.",
			Fix:   health.Update,
			reads: []fact{observe.Keys, observe.Records}, side: (*side).keysMatch,
		},
		{
			ID: "LQ-TUNNEL-ENDPOINT", What: "The client uses an endpoint that the server's Service has now, unless the user chose another one. While the tunnel works all the same, it is a warning: connections that nodes track outlive the Service's port, new ones do not begin.",
			Needs: []string{"LQ-GATEWAY-RUNNING", "LQ-GATEWAY-SERVICE", "LQ-GATEWAY-REPORT", "LQ-GATEWAY-APPLIED"},
			Cause: "The Service was made anew, or its NodePort or load balancer changed.",
			Fix:   health.Update,
			reads: []fact{observe.Records}, side: (*side).endpointsCurrent,
		},
	}
}

func (s *side) keysMatch() outcome {
	switch {
	case s.peer == nil || s.peer.record == nil || s.record == nil:
		return skipped("the keys of both clusters are compared: name the other one with --remote-context")
	case s.peer.Errors[observe.Keys] != nil:
		return skipped(fmt.Sprintf("Secrets of %s: %v", s.peer.name, kube.Unread(s.peer.Errors[observe.Keys])))
	}
	var seen []string
	for _, id := range s.record.GatewayIDs() {
		own, ok := s.Keys[id.KeysName()]
		if !ok {
			seen = append(seen, "there is no Secret "+id.KeysName())
			continue
		}
		if own.Err != nil {
			continue // LQ-OBJECTS-KEYS names it
		}
		for i := range s.record.Gateways[id.Number-1].Tunnels {
			far := records.GatewayID{Peering: s.peer.status.Peer, Number: i + 1}
			if t, ok := s.peer.record.Tunnel(far.Number, id.Number); ok && t.Driver != own.Driver {
				differs := fmt.Sprintf("Secret %s has another key of gateway %d than %s knows", id.KeysName(), id.Number, s.peer.name)
				if !slices.Contains(seen, differs) {
					seen = append(seen, differs)
				}
			}
			if theirs, ok := s.peer.Keys[far.KeysName()]; ok && theirs.Err == nil && theirs.Preshared != own.Preshared {
				seen = append(seen, fmt.Sprintf("gateway %d and gateway %d of %s have different preshared keys", id.Number, far.Number, s.peer.name))
			}
		}
	}
	return judged(Failed, seen)
}

// tunnelName returns the name of a tunnel, or of all of a gateway (0), with its endpoints if this side is the client.
func (s *side) tunnelName(own, peer int) string {
	name := fmt.Sprintf("tunnel %d-%d", own, peer)
	if peer == 0 {
		name = fmt.Sprintf("tunnels of gateway %d", own)
	}
	if e := s.endpoints(own, peer); len(e) > 0 {
		name += " to " + strings.Join(e, ", ")
	}
	return name
}

// endpoints returns the endpoints of a tunnel, or of all tunnels of a gateway (0).
func (s *side) endpoints(own, peer int) (all []string) {
	if s.record == nil || own > len(s.record.Gateways) {
		return nil
	}
	for i, t := range s.record.Gateways[own-1].Tunnels {
		if peer == 0 || peer == i+1 {
			all = append(all, t.Endpoints...)
		}
	}
	return all
}

func (s *side) endpointsCurrent() outcome {
	switch {
	case s.record == nil || s.record.Role != records.Client:
		return skipped("this cluster is the WireGuard server")
	case s.peer == nil || s.peer.Errors[observe.Objects] != nil:
		return skipped("the Service of the server is read: name the other cluster with --remote-context")
	}
	service := s.peer.service(records.ServiceName(s.peer.status.Peer))
	switch {
	case service == nil:
		return skipped("the server has no Service")
	case !s.reported():
		return skipped("no gateway has reported lately")
	}
	failed := s.outdated(Failed, service)
	if failed.state != Passed || *s.record.Settings.Complete().EndpointPort != 0 {
		return failed // it works with whichever endpoint is chosen
	}
	return s.outdated(Warning, service)
}

// outdated checks the endpoints of tunnels that do not work; as a warning, those of tunnels that do. Late reports do
// not count.
func (s *side) outdated(state State, service *corev1.Service) outcome {
	var seen []string
	for n, r := range s.reports {
		if r == nil {
			continue
		}
		for i, t := range r.AllTunnels() {
			if is, _ := health.Tunnel(r, t); (is == health.Healthy) != (state == Warning) {
				continue
			}
			port := servicePort(service, records.TunnelID{Server: i + 1, Client: n + 1})
			endpoints := s.endpoints(n+1, i+1)
			if used := t.Endpoint; used.IsValid() {
				endpoints = append(endpoints, used.String())
			}
			for _, e := range endpoints {
				if _, used, _ := net.SplitHostPort(e); port != 0 && used != strconv.Itoa(int(port)) {
					seen = append(seen, fmt.Sprintf("tunnel %d-%d: the client sends to %s, and the Service has port %d", n+1, i+1, e, port))
				}
			}
		}
	}
	return judged(state, seen)
}

// servicePort returns the port at which clients reach a tunnel; 0 if there is none, or no address yet.
func servicePort(service *corev1.Service, t records.TunnelID) int32 {
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer && len(service.Status.LoadBalancer.Ingress) == 0 {
		return 0
	}
	for _, p := range service.Spec.Ports {
		switch {
		case p.Name != t.PortName():
		case service.Spec.Type == corev1.ServiceTypeNodePort:
			return p.NodePort
		default:
			return p.Port
		}
	}
	return 0
}
