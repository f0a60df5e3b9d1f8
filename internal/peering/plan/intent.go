package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// Line is a line of a plan's intent: something that users know by name, with its old and its new value.
type Line struct {
	// Clusters are contexts, or the name of a peer that is not in the plan; none in a note about all.
	Clusters []string    `json:"clusters,omitempty"`
	Action   kube.Action `json:"action,omitempty"` // "": a note, which follows from other lines
	Subject  string      `json:"subject"`
	Old      string      `json:"old,omitempty"`
	New      string      `json:"new,omitempty"`

	group  bool // New is set to the kinds of the covered objects
	covers []ref
}

// ref is a field of a change in a plan, by indexes. The field of the object itself is -1.
type ref struct{ cluster, change, field int }

// Value returns the old and the new value, as far as there are any.
func (l Line) Value() string {
	if l.Old != "" && l.New != "" {
		return l.Old + " -> " + l.New
	}
	return l.Old + l.New
}

// alike reports whether two lines are the same, but for the clusters.
func (l Line) alike(o Line) bool {
	return l.Action == o.Action && l.Subject == o.Subject && l.Old == o.Old && l.New == o.New
}

// Intent returns what a plan changes for users and for traffic. A line covers each field of each change: what has no
// name of its own is named by object and field.
func (p Plan) Intent() []Line {
	x := intent{Plan: p}
	for i := range p.Clusters {
		x.named = append(x.named, x.namedLines(i))
	}
	for _, first := range []bool{true, false} { // the records of peerings come first
		for i, c := range p.Clusters {
			for j, change := range c.Changes {
				if c.isRecord(change) == first {
					x.change(i, j, change)
				}
			}
		}
	}
	x.describeGroups()
	for i := range x.lines {
		slices.SortFunc(x.lines[i].Clusters, func(a, b string) int { return p.position(a) - p.position(b) })
	}
	slices.SortStableFunc(x.lines, func(a, b Line) int {
		return cmp.Or(len(b.Clusters)-len(a.Clusters), p.position(a.Clusters[0])-p.position(b.Clusters[0]))
	})
	return append(x.lines, x.notes()...)
}

// position returns the index of a cluster, after all others if it is not in the plan.
func (p Plan) position(context string) int {
	if i := slices.IndexFunc(p.Clusters, func(c ClusterPlan) bool { return c.Context == context }); i >= 0 {
		return i
	}
	return len(p.Clusters)
}

// intent collects the lines of a plan.
type intent struct {
	Plan
	lines []Line
	named [][]namedLine // by cluster
}

// change covers the fields of a change.
func (x *intent) change(i, j int, c kube.Change) {
	object := x.object(i, c)
	if c.Action != kube.Changed || len(c.Fields) == 0 {
		x.cover(ref{i, j, -1}, object...)
	}
	for k, f := range c.Fields {
		lines := object
		if r, ok := reservationOf(f); ok {
			lines = x.reservation(i, c, f, r)
		} else if c.Action == kube.Changed {
			lines = x.field(i, c, f)
		}
		x.cover(ref{i, j, k}, lines...)
	}
}

// cover adds lines for a field.
func (x *intent) cover(at ref, lines ...Line) {
	for _, l := range lines {
		k := slices.IndexFunc(x.lines, l.alike)
		if k < 0 {
			k, x.lines = len(x.lines), append(x.lines, l)
		} else if !slices.Contains(x.lines[k].Clusters, l.Clusters[0]) {
			x.lines[k].Clusters = append(x.lines[k].Clusters, l.Clusters[0])
		}
		x.lines[k].covers = append(x.lines[k].covers, at)
	}
}

// object returns the lines for an object that is created or deleted.
func (x *intent) object(i int, c kube.Change) []Line {
	cluster := x.Clusters[i]
	l := Line{Clusters: []string{cluster.Context}, Action: c.Action, Subject: c.Kind + " " + c.Name}
	id, ofPeering := cluster.gateway(c.Name)
	r := cluster.peerings[id.Peering]
	switch {
	case !ofPeering:
		if cluster.changes("ConfigMap", records.FabricName, c.Action) && c.Action != kube.Changed {
			l.Subject, l.group = "installation", true
		}
	case r.before == nil || r.after == nil:
		l.Subject, l.group = "peering "+id.Peering, true
		if cluster.isRecord(c) {
			return append(x.covering(i, "ConfigMap "+c.Name), l)
		}
	case id.Number > min(len(r.before.Gateways), len(r.after.Gateways)) || c.Kind == "PodDisruptionBudget":
		return orElse(x.about(i, subjectGateways), l)
	case c.Kind == "Service" || c.Kind == "Ingress":
		return orElse(x.about(i, subjectServer), l)
	case c.Kind == "Secret":
		return []Line{keyLine(cluster.Context, id.Number)}
	}
	return []Line{l}
}

// orElse returns lines, or another one if there are none.
func orElse(lines []Line, other Line) []Line {
	if len(lines) == 0 {
		lines = append(lines, other)
	}
	return lines
}

// field returns the lines for a field of an object that is changed.
func (x *intent) field(i int, c kube.Change, f kube.FieldChange) []Line {
	path, cluster := index.ReplaceAllString(f.Path, ""), x.Clusters[i]
	l := line(cluster.Context, fmt.Sprintf("%s of %s %s", f.Path, c.Kind, c.Name), text(f.Old), text(f.New))
	id, ofPeering := cluster.gateway(c.Name)
	switch {
	case ofPeering && (c.Kind == "Secret" || path == keyPath):
		return []Line{keyLine(cluster.Context, id.Number)}
	case c.Kind == "ConfigMap" && c.Name == records.FabricName && fabricSubjects[path] != "":
		l.Subject = fabricSubjects[path]
	case path == "spec.template.spec.containers.image":
		l.Subject = "image"
	case c.Name == records.IPAMName && path == poolsPath:
		l.Subject = path
	}
	switch {
	case f.Redacted:
		l.Old, l.New = "", "another value"
	case f.Later:
		l.New = kube.ErrLater.Error()
	}
	return orElse(x.covering(i, c.Kind+" "+c.Name+" "+path, c.Kind+" "+path), l)
}

// reservation returns the lines for a reservation. The ranges of a new peer are the addresses in its record. What a
// cluster uses by itself is reserved and released with the installation.
func (x *intent) reservation(i int, c kube.Change, f kube.FieldChange, r ipam.Reservation) []Line {
	l := line(x.Clusters[i].Context, "reservation", "", reservation(r).String())
	if f.New == nil {
		l = line(x.Clusters[i].Context, "reservation", reservation(r).String(), "")
	}
	name, _ := r.Owner.Peering()
	record := "ConfigMap " + records.PeeringName(name)
	switch r.Purpose {
	case ipam.PodCIDR, ipam.ServiceCIDR, ipam.NodeNetwork:
		if c.Action != kube.Changed {
			return x.object(i, c)
		}
	case ipam.PeerPods:
		return orElse(x.covering(i, record+" peer.podCIDRs"), l)
	case ipam.PeerExternal:
		return orElse(x.covering(i, record+" peer.externalCIDRs"), l)
	case ipam.ExposedHost, ipam.OutsideHost:
		return orElse(x.covering(i, record+" exposed"), l)
	}
	return []Line{l}
}

// describeGroups sets the values of lines that stand for many objects: their kinds.
func (x *intent) describeGroups() {
	for i, l := range x.lines {
		var words []string
		counts := make(map[string]int)
		for _, at := range l.covers {
			switch kind := x.Clusters[at.cluster].Changes[at.change].Kind; {
			case at.field >= 0:
			case slices.Contains(mainKinds, kind):
				counts[kind]++
			default:
				counts["other"]++
			}
		}
		for _, kind := range append(mainKinds, "other") {
			if n := counts[kind]; n > 0 {
				words = append(words, strings.TrimPrefix(Count(n, kind), "1 "))
			}
		}
		if l.group {
			x.lines[i].New = strings.Join(words, ", ")
		}
	}
}

// mainKinds are the kinds that a line for many objects names.
var mainKinds = []string{"Namespace", "DaemonSet", "Deployment", "Service", "Secret"}

// Count returns a number with its noun.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// notes returns what follows from the lines: who is interrupted, and what is known only during the operation.
func (x *intent) notes() (notes []Line) {
	var later []string
	for _, c := range x.Clusters {
		for _, change := range c.Changes {
			for _, f := range change.Fields {
				if what := laterName(change.Name, f.Path); f.Later && !slices.Contains(later, what) {
					later = append(later, what)
				}
			}
		}
		if pods := c.replacedPods(); len(pods) > 0 {
			notes = append(notes, Line{Clusters: []string{c.Context}, Subject: "replaced pods", New: strings.Join(pods, ", ")})
		}
	}
	// Of changes that replace tunnels, whether packets are lost.
	interrupting := map[string]string{subjectServer: "are", subjectTunnel: "can be", subjectWireGuard: "can be"}
	if i := slices.IndexFunc(x.lines, func(l Line) bool { return l.Action == kube.Changed && interrupting[l.Subject] != "" }); i >= 0 {
		notes = append(notes, Line{Subject: "interruption", New: "packets between the clusters " + interrupting[x.lines[i].Subject] + " lost for some seconds"})
	}
	if len(later) > 0 {
		notes = append(notes, Line{Subject: kube.ErrLater.Error(), New: strings.Join(later, ", ")})
	}
	return notes
}

// replacedPods returns the workloads whose pods are replaced. Gateways are replaced one after the other, and the
// kernels of nodes go on without their helpers.
func (p ClusterPlan) replacedPods() (workloads []string) {
	for _, c := range p.Changes {
		if c.Action == kube.Changed && slices.ContainsFunc(c.Fields, func(f kube.FieldChange) bool { return strings.HasPrefix(f.Path, "spec.template.") }) {
			workloads = append(workloads, c.Name)
		}
	}
	return workloads
}

// Flat returns the subject, and its cluster if it is not of all.
func (l Line) Flat() string {
	if len(l.Clusters) != 1 {
		return l.Subject
	}
	return l.Subject + " of " + l.Clusters[0]
}

// Columns returns texts of lines: a heading, and the value.
func Columns(lines []Line, heading func(Line) string) []string {
	texts, width := make([]string, len(lines)), 0
	for _, l := range lines {
		width = max(width, utf8.RuneCountInString(heading(l)))
	}
	for i, l := range lines {
		texts[i] = strings.TrimRight(fmt.Sprintf("%-*s   %s", width, heading(l), l.Value()), " ")
	}
	return texts
}

// Sum counts the objects of a plan by action.
func (p Plan) Sum() string {
	n := make(map[kube.Action]int)
	for _, c := range p.Clusters {
		for _, change := range c.Changes {
			n[change.Action]++
		}
	}
	return fmt.Sprintf("%s: %s to create, %d to change, %d to delete", Count(len(p.Clusters), "cluster"),
		Count(n[kube.Created], "object"), n[kube.Changed], n[kube.Deleted])
}
