package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// namedLine is a line for a value of a record, or for a setting of pods, that differs.
type namedLine struct {
	Line
	// fields are those that it covers: "KIND NAME PATH" or "KIND PATH", without indexes. After a dot at the end, any
	// path may follow.
	fields []string
}

// Subjects that have rules of their own.
const (
	subjectServer    = "server"
	subjectGateways  = "gateways"
	subjectTunnel    = "tunnel"
	subjectWireGuard = "wireguard"
)

// fabricSubjects are the subjects of the fabric's fields.
var fabricSubjects = map[string]string{
	"name": "name", "podCIDRs": "pod CIDRs", "serviceCIDRs": "Service CIDRs", "nodeNetworks": "node networks", "externalCIDRs": "external CIDR",
	"internalCIDRs": "internal CIDR", "overlay.kind": "overlay", "overlay.port": "overlay port", "mtu": "MTU of links",
	"cni": "network plugin", "allowForward": "allow-forward",
}

// followers are the fields of other objects that follow from a subject of a peering's record.
var followers = map[string][]string{
	subjectGateways:  {"Service spec.ports", "Service spec.ports."},
	subjectWireGuard: {"Deployment spec.template.spec.volumes", "Deployment spec.template.spec.containers.volumeMounts"},
	"gw-server-service-type": {
		"Service spec.type", "Service spec.externalTrafficPolicy", "Service spec.allocateLoadBalancerNodePorts", "Service spec.ports", "Service spec.ports.",
	},
	"gw-server-service-port":           {"Service spec.ports", "Service spec.ports."},
	"gw-server-service-nodeport":       {"Service spec.ports", "Service spec.ports."},
	"gw-server-service-loadbalancerip": {"Service spec.loadBalancerIP"},
	"gw-server-service-annotation":     {"Service metadata.annotations", "Service metadata.annotations."},
	"gw-server-websocket-port":         {"Service spec.ports", "Service spec.ports."},
	"gw-server-ingress":                {"Ingress spec.rules", "Ingress spec.rules.", "Ingress spec.tls", "Ingress spec.tls."},
	"gw-server-ingress-class":          {"Ingress spec.ingressClassName"},
	"gw-server-ingress-annotation":     {"Ingress metadata.annotations", "Ingress metadata.annotations."},
	"gw-client-proxy-secret":           {"Deployment spec.template.spec.volumes", "Deployment spec.template.spec.containers.volumeMounts"},
}

// podFields are the flag and the fields of a pod's template for each field of templates.Pods.
var podFields = map[string][]string{
	"labels":              {"pod-labels", "metadata.labels."},
	"annotations":         {"pod-annotations", "metadata.annotations."},
	"imagePullSecrets":    {"image-pull-secret", "spec.imagePullSecrets", "spec.imagePullSecrets."},
	"priorityClass":       {"priority-class", "spec.priorityClassName"},
	"requests":            {"requests", "spec.containers.resources.requests."},
	"limits":              {"limits", "spec.containers.resources.limits.", "spec.containers.env", "spec.containers.env."},
	"gatewayNodeSelector": {"gateway-node-selector", "spec.nodeSelector."},
	"gatewayTolerations":  {"gateway-toleration", "spec.tolerations", "spec.tolerations."},
}

// recorded is a record of a peering in a plan; nil: it does not exist. It may be incomplete.
type recorded struct{ before, after *records.Peering }

// line returns the line for a value that differs.
func line(cluster, subject, was, is string) Line {
	l := Line{Clusters: []string{cluster}, Action: kube.Changed, Subject: subject, Old: was, New: is}
	switch "" {
	case is:
		l.Action = kube.Deleted
	case was:
		l.Action = kube.Created
	}
	return l
}

// keyLine returns the line for a new key of a gateway.
func keyLine(cluster string, number int) Line {
	return Line{Clusters: []string{cluster}, Action: kube.Changed, Subject: "key of gateway " + strconv.Itoa(number), New: "replaced"}
}

// gateway returns the gateway to which an object with that name belongs; the first one of a peering, if the object
// belongs to all.
func (p ClusterPlan) gateway(name string) (records.GatewayID, bool) {
	for peering := range p.peerings {
		for _, id := range records.GatewayIDs(peering, records.MaxGateways) {
			if name == records.WebSocketName(peering) || name == id.Name() || name == id.StatusName() || name == id.KeysName() {
				return id, true
			}
		}
	}
	return records.GatewayID{}, false
}

// isRecord reports whether a change is of the record of a peering.
func (p ClusterPlan) isRecord(c kube.Change) bool {
	id, _ := records.IdentityOf(c.Name)
	return c.Kind == "ConfigMap" && id.Component == records.ComponentPeering
}

// changes reports whether a plan has an action on an object.
func (p ClusterPlan) changes(kind, name string, a kube.Action) bool {
	return slices.ContainsFunc(p.Changes, func(c kube.Change) bool { return c.Kind == kind && c.Name == name && c.Action == a })
}

// namedLines returns the lines for what differs in a cluster's records and in the settings of its pods.
func (p Plan) namedLines(i int) (lines []namedLine) {
	c := p.Clusters[i]
	for _, name := range slices.Sorted(maps.Keys(c.peerings)) {
		peer := name
		if len(p.Clusters) == 2 {
			peer = p.Clusters[1-i].Context
		}
		for _, l := range c.peerings[name].lines(c.Context, peer) {
			for k, path := range l.fields {
				l.fields[k] = "ConfigMap " + records.PeeringName(name) + " " + path
			}
			l.fields = append(l.fields, followers[l.Subject]...)
			lines = append(lines, l)
		}
	}
	for _, change := range c.Changes {
		lines = append(lines, podLines(c.Context, change)...)
	}
	return lines
}

// covering returns the lines that cover one of these fields, or the object "KIND NAME".
func (x *intent) covering(i int, fields ...string) (lines []Line) {
	for _, l := range x.named[i] {
		if slices.ContainsFunc(l.fields, func(f string) bool {
			return slices.Contains(fields, f) || slices.ContainsFunc(fields, func(field string) bool {
				return strings.HasSuffix(f, ".") && strings.HasPrefix(field, f) || strings.HasPrefix(f, field+" ")
			})
		}) {
			lines = append(lines, l.Line)
		}
	}
	return lines
}

// about returns the line with a subject of the cluster itself.
func (x *intent) about(i int, subject string) (lines []Line) {
	for _, l := range x.named[i] {
		if l.Subject == subject && l.Clusters[0] == x.Clusters[i].Context {
			lines = append(lines, l.Line)
		}
	}
	return lines
}

// lines returns what differs in the record of a peering; the fields are its own.
func (r recorded) lines(own, peer string) (all []namedLine) {
	if r.after == nil {
		return nil // the peering is removed, with all that its record has
	}
	var b records.Peering
	a := *r.after
	if r.before != nil {
		b = *r.before
	}
	add := func(cluster, subject, was, is string, fields ...string) {
		if was != is {
			all = append(all, namedLine{line(cluster, subject, was, is), fields})
		}
	}
	add(own, subjectServer, serverOf(b, own, peer), serverOf(a, own, peer), "role", "gateways.tunnels.listenPort", "gateways.tunnels.endpoints", "gateways.tunnels.webSocket")
	add(own, subjectGateways, count(len(b.Gateways)), count(len(a.Gateways)), "gateways")
	add(peer, subjectGateways, count(tunnels(b)), count(tunnels(a)), "gateways.tunnels")
	add(own, "temporary gateways", count(temporary(b)), count(temporary(a)), "gateways", "gateways.temporary")
	add(own, "MTU", mtuOf(b), mtuOf(a), "mtu", "settings.mtu")
	fields := reflect.TypeFor[records.GatewaySettings]()
	for i, g := range records.GatewaySettingTable() {
		if name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ","); name != "mtu" {
			was, is := g.Text(b.Settings), g.Text(a.Settings)
			if r.before == nil && was != is {
				was = ""
			}
			add(own, g.Flag, was, is, "settings."+name, "settings."+name+".")
		}
	}
	for _, m := range []struct {
		cluster, subject string
		was, is          []records.Mapping
		field            string
	}{
		{own, "pods of " + peer, b.Peer.PodCIDRs, a.Peer.PodCIDRs, "peer.podCIDRs"},
		{own, "nodes and hosts of " + peer, b.Peer.ExternalCIDRs, a.Peer.ExternalCIDRs, "peer.externalCIDRs"},
		{peer, "pods of " + own, b.Local.PodCIDRs, a.Local.PodCIDRs, "local.podCIDRs"},
		{peer, "nodes and hosts of " + own, b.Local.ExternalCIDRs, a.Local.ExternalCIDRs, "local.externalCIDRs"},
	} {
		add(m.cluster, m.subject, addresses(m.was), addresses(m.is), m.field, m.field+".", "local")
	}
	for _, e := range slices.Concat(b.Exposed, a.Exposed) {
		add(own, "exposed host "+e.Host.String(), exposedAs(b, e.Host), exposedAs(a, e.Host), "exposed", "exposed.")
	}
	if r.before == nil {
		return all
	}
	if a.Role == b.Role {
		add(peer, "endpoints", few(b.Endpoints()), few(a.Endpoints()), "gateways.tunnels.endpoints")
		add(peer, "endpoints for WebSocket", few(b.WebSockets()), few(a.WebSockets()), "gateways.tunnels.webSocket")
	}
	return append(all, keyLines(b, a, peer)...)
}

// keyLines returns the lines for the peer's gateways that have other keys.
func keyLines(b, a records.Peering, peer string) (all []namedLine) {
	for j := range tunnels(b) {
		if slices.ContainsFunc(b.GatewayIDs(), func(id records.GatewayID) bool {
			was, had := b.Tunnel(id.Number, j+1)
			is, has := a.Tunnel(id.Number, j+1)
			return had && has && is.Driver != was.Driver
		}) {
			all = append(all, namedLine{keyLine(peer, j+1), []string{"gateways.tunnels.tunnel."}})
		}
	}
	return all
}

func serverOf(p records.Peering, own, peer string) string {
	return map[records.Role]string{records.Server: own, records.Client: peer}[p.Role]
}

// count returns a number; "" for none.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// tunnels returns the number of the peer's gateways.
func tunnels(p records.Peering) int {
	if len(p.Gateways) == 0 {
		return 0
	}
	return len(p.Gateways[0].Tunnels)
}

func temporary(p records.Peering) (n int) {
	for _, g := range p.Gateways {
		if g.Temporary {
			n++
		}
	}
	return n
}

func mtuOf(p records.Peering) string {
	if m := p.Settings.MTU; p.MTU != 0 && (m == nil || *m == 0) {
		return fmt.Sprintf("%d (measured)", p.MTU)
	}
	return count(p.MTU)
}

func addresses(mappings []records.Mapping) string {
	return Joined(mappings, func(m records.Mapping) string {
		if m.Identity() {
			return m.Real.String()
		}
		return m.Real.String() + " at " + m.Seen.String()
	})
}

func exposedAs(p records.Peering, host netip.Addr) string {
	if e := p.ExposedAs(host); e.Address.IsValid() {
		return "as " + e.Address.String()
	}
	return ""
}

// few lists texts, each once, and counts those after the second.
func few(all []string) string {
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	if len(all) > 2 {
		all = append(all[:2], fmt.Sprintf("%d more", len(all)-2))
	}
	return strings.Join(all, ", ")
}

// podLines returns the lines for the settings of pods with which a workload is rendered.
func podLines(cluster string, c kube.Change) (lines []namedLine) {
	const annotations = "metadata.annotations"
	for _, f := range c.Fields {
		var settings [2]map[string]any
		for i, value := range []any{f.Old, f.New} {
			if all, is := value.(map[string]any); is && f.Path == annotations && len(all) == 1 {
				value = all[templates.AnnotationPods]
			}
			document, _ := value.(string)
			_ = json.Unmarshal([]byte(document), &settings[i]) // none without the annotation
		}
		if c.Action != kube.Changed || f.Path != annotations && f.Path != annotations+"."+templates.AnnotationPods {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(podFields)) {
			l := namedLine{line(cluster, podFields[key][0], text(settings[0][key]), text(settings[1][key])), []string{c.Kind + " " + c.Name + " " + f.Path}}
			for _, field := range podFields[key][1:] {
				l.fields = append(l.fields, c.Kind+" "+c.Name+" spec.template."+field)
			}
			if l.Old != l.New {
				lines = append(lines, l)
			}
		}
	}
	return lines
}

// text returns the value of a field for users.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return "none"
	case string:
		if v != "" && strconv.Quote(v) == `"`+v+`"` {
			return v
		}
	case map[string]any:
		texts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if one, is := v[key].(string); is {
				texts = append(texts, key+"="+text(one))
			}
		}
		if len(texts) == len(v) && len(v) > 0 {
			return strings.Join(texts, ", ")
		}
	case []any:
		if !slices.ContainsFunc(v, func(e any) bool { _, is := e.(string); return !is }) {
			return Joined(v, text)
		}
	}
	return kube.Quote(value)
}
