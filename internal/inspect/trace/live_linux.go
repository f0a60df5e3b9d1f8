package trace

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/image"
	"liqonet.io/liqonet/internal/inspect/trace/probe"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/translate"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/templates"
)

// travelTime is the timeout for a packet and its answer.
const travelTime = 2 * time.Second

// Limits for the report of a pod: bytes, and packets.
const (
	maxReport    = 1 << 20
	maxSightings = 16
)

// probedPlace is a place with the question for its probe.
type probedPlace struct {
	Place

	side     *side
	question probe.Question
	session  io.ReadWriteCloser // nil: none
	answers  *bufio.Reader
}

// live sends a packet from the sender's node with the sender's address, and all kernels on its possible paths report
// how they handle it.
func (o Options) live(ctx context.Context, local, remote *side, r Result) (*Live, error) {
	switch {
	case r.From.Unreachable != "" || r.From.Node == "" || !r.To.Seen.IsValid():
		return nil, fmt.Errorf("send a packet: %s", cmp.Or(r.From.Unreachable, r.There.Dropped()))
	case r.Port == 0 && r.Protocol != ICMP:
		return nil, fmt.Errorf("send a %s packet: the port of the receiver is not known", r.Protocol)
	}
	for _, s := range []*side{local, remote} {
		if err := inventory.CheckPermissions(ctx, s.cluster, templates.Administer); err != nil {
			return nil, err
		}
	}
	port := uint16(40000 + time.Now().UnixNano()%20000) // of the sender; it identifies the packet
	l := &Live{Packet: r.flow(Addresses{r.From.Address, r.To.Seen}, port, r.Port)}
	places, err := r.places(ctx, local, remote, port)
	if err != nil {
		return nil, err
	}
	if err := o.observe(ctx, places); err != nil {
		return nil, err
	}
	for _, p := range places {
		l.Places = append(l.Places, p.Place)
	}
	l.judge(r)
	return l, nil
}

func (f Flow) flow(a Addresses, from, to uint16) probe.Flow {
	if f.Protocol == ICMP {
		from, to = 0, 0
	}
	return probe.Flow{Protocol: string(f.Protocol), From: netip.AddrPortFrom(a.Source, from), To: netip.AddrPortFrom(a.Destination, to)}
}

// places returns the nodes of both ends and all gateways, as flows are spread over the gateways.
func (r Result) places(ctx context.Context, local, remote *side, port uint16) (all []*probedPlace, err error) {
	source, err := remote.translator.ImportedFrom(r.From.Seen)
	if err != nil {
		return nil, err
	}
	destination, err := local.translator.ImportedFrom(r.To.Seen)
	if err != nil {
		return nil, err
	}
	tunnel := Addresses{source.Translated, destination.Translated}
	sent, received := Addresses{r.From.Address, r.To.Seen}, Addresses{r.From.Seen, r.To.Address}
	add := func(s *side, kind Kind, name, pod string, there, back Addresses, lookup probe.Lookup) {
		all = append(all, &probedPlace{Place: Place{Cluster: s.Fabric.Name, Kind: kind, Name: name, Pod: pod}, side: s, question: probe.Question{
			Flows:  []probe.Flow{r.flow(there, port, r.Port), r.flow(Addresses{back.Destination, back.Source}, r.Port, port)},
			Lookup: &lookup,
		}})
	}
	node := func(s *side, name string, a Addresses, lookup probe.Lookup) error {
		pods, err := kube.All[*corev1.Pod](ctx, s.cluster, templates.NodePods())
		i := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == name && p.Status.Phase == corev1.PodRunning })
		if err == nil && i < 0 {
			err = fmt.Errorf("no helper runs on node %q of cluster %q", name, s.cluster.Context)
		}
		if err == nil {
			add(s, Node, name, pods[i].Name, a, a, lookup)
		}
		return err
	}
	gateways := func(s *side, there, back Addresses, lookup probe.Lookup) {
		for _, id := range s.peering.GatewayIDs() {
			if g, ok := s.Gateways[id]; ok {
				add(s, Gateway, g.Pod, g.Pod, there, back, lookup)
			}
		}
	}
	err = node(local, r.From.Node, sent, probe.Lookup{From: sent.Source, To: sent.Destination, Pod: r.From.Kind == translate.Pod})
	if err != nil {
		return nil, err
	}
	all[0].question.Send = true
	gateways(local, sent, tunnel, probe.Lookup{From: tunnel.Source, To: tunnel.Destination, Link: netops.Overlay})
	if r.To.Kind == translate.Exposed { // its answers go to the gateway's address
		gateways(remote, tunnel, tunnel, probe.Lookup{To: received.Destination})
		return all, nil
	}
	gateways(remote, tunnel, received, probe.Lookup{From: received.Source, To: received.Destination, Link: netops.TunnelLink(1)})
	if r.To.Node != "" {
		err = node(remote, r.To.Node, received, probe.Lookup{To: received.Destination})
	}
	return all, err
}

// observe runs a probe in all places at once. The packet is sent when all are ready.
func (o Options) observe(ctx context.Context, places []*probedPlace) error {
	defer func() {
		for _, p := range places {
			if p.session != nil {
				_ = p.session.Close() // its output is not needed
			}
		}
	}()
	each := func(do func(p *probedPlace) error) {
		var group sync.WaitGroup
		for _, p := range places {
			group.Go(func() {
				if len(p.Errors) > 0 {
					return
				}
				if err := do(p); err != nil {
					p.Errors = append(p.Errors, records.Brief(err.Error()))
				}
			})
		}
		group.Wait()
	}
	each(func(p *probedPlace) error { return p.begin(ctx, o) })
	sender := places[0]
	if len(sender.Errors) > 0 {
		return fmt.Errorf("send a packet from node %q: %s", sender.Name, strings.Join(sender.Errors, "; "))
	}
	if _, err := fmt.Fprintln(sender.session, probe.Send); err != nil {
		return err
	}
	select {
	case <-time.After(travelTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	each((*probedPlace).end)
	return ctx.Err()
}

// begin starts the probe, and waits until it is ready.
func (p *probedPlace) begin(ctx context.Context, o Options) error {
	question, err := json.Marshal(p.question)
	if err != nil {
		return err
	}
	if p.session, err = o.Exec(ctx, p.side.cluster, p.Pod, image.Entrypoint, "helper", "trace", string(question)); err != nil {
		p.session = nil
		return err
	}
	p.answers = bufio.NewReader(io.LimitReader(p.session, maxReport))
	line, err := p.answers.ReadString('\n')
	if err == nil && strings.TrimSpace(line) != probe.Ready {
		err = fmt.Errorf("unexpected answer %q", line)
	}
	return err
}

// end stops the probe and reads its report.
func (p *probedPlace) end() error {
	if _, err := fmt.Fprintln(p.session, probe.Stop); err != nil {
		return err
	}
	var report probe.Report
	if err := json.NewDecoder(p.answers).Decode(&report); err != nil {
		return err
	}
	p.Route, p.Out, p.Detour, p.Errors = report.Route, report.Link, report.Detour, report.Errors
	for _, s := range report.Sightings[:min(len(report.Sightings), maxSightings)] {
		if there := p.question.Flows[0]; s.From == there.From.Addr() && s.To == there.To.Addr() {
			p.There = append(p.There, s)
		} else {
			p.Back = append(p.Back, s)
		}
	}
	return nil
}

// judge determines how far the packet and its answer came. The pod resets a TCP connection that it has not opened. Its
// node forwards that reset like other packets of pods, and must not drop it either.
func (l *Live) judge(r Result) {
	there := func(p Place) []probe.Sighting { return p.There }
	back := func(p Place) []probe.Sighting { return p.Back }
	reversed := slices.Clone(l.Places)
	slices.Reverse(reversed)
	sender, ends := l.Places[0], l.Places[len(l.Places)-1:]
	if r.To.Kind == translate.Exposed { // any gateway of its cluster may have forwarded the packet
		ends = slices.DeleteFunc(slices.Clone(l.Places), func(p Place) bool { return p.Cluster != r.To.Cluster })
	}
	arrived := slices.ContainsFunc(ends, func(p Place) bool { return seenLeaving(p.There) })
	answered := seenLeaving(sender.Back)
	if sender.Detour != "" { // regardless of the packet that its node sent
		arrived, answered = false, false
		l.Arrived, l.Answered, l.Last = &arrived, &answered, fmt.Sprintf("dropped at %s: %s", sender, sender.Detour)
		return
	}
	if len(sender.There) == 0 && len(sender.Errors) > 0 {
		l.Unknown = sender.unasked()
		return
	}
	l.Answered = &answered
	l.Last = dropped(l.Places, there)
	i := slices.IndexFunc(ends, func(p Place) bool { return len(p.There) == 0 && len(p.Errors) > 0 })
	if l.Last == "" && !arrived && !answered && i >= 0 {
		l.Unknown, l.Last = ends[i].unasked(), furthest(l.Places, there)
		return
	}
	arrived = l.Last == "" && (arrived || answered)
	l.Arrived = &arrived
	switch {
	case !arrived:
		l.Last, answered = cmp.Or(l.Last, furthest(l.Places, there)), false
	case !answered:
		l.Last = cmp.Or(dropped(reversed, back), furthest(reversed, back))
	}
}

// unasked returns the reason for which the state of a place is unknown.
func (p Place) unasked() string {
	return fmt.Sprintf("%s was not asked: %s", p, strings.Join(p.Errors, "; "))
}

// seenLeaving reports whether one of the packets left a place.
func seenLeaving(all []probe.Sighting) bool {
	return slices.ContainsFunc(all, func(s probe.Sighting) bool { return s.LeftTo.IsValid() && s.Dropped == "" })
}

// dropped describes the first drop of a packet; "" if there is none.
func dropped(places []Place, seen func(Place) []probe.Sighting) string {
	for _, p := range places {
		for _, s := range seen(p) {
			if s.Dropped != "" {
				return fmt.Sprintf("dropped at %s: %s", p, s.Dropped)
			}
		}
	}
	return ""
}

// furthest describes the packet in the last of the places, which are in order, that observed it; "" if none did.
func furthest(places []Place, seen func(Place) []probe.Sighting) string {
	for _, p := range slices.Backward(places) {
		all := seen(p)
		switch {
		case len(all) == 0:
			continue
		case !all[0].LeftTo.IsValid() && p.Detour != "":
			return fmt.Sprintf("dropped at %s: %s", p, p.Detour)
		case !all[0].LeftTo.IsValid():
			return fmt.Sprintf("seen last at %s, which it did not leave: no rule of nftables drops it there; a route, the reverse path filter, iptables-legacy or eBPF may", p)
		}
		return fmt.Sprintf("seen last at %s, which it left by %s", p, cmp.Or(all[0].Out, "delivery to the node"))
	}
	return ""
}

// String returns the place as it appears in messages.
func (p Place) String() string { return fmt.Sprintf("%s %s of %s", p.Kind, p.Name, p.Cluster) }
