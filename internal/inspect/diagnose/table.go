package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
)

// Layer is the subject of a check.
type Layer string

// The layers, in order of dependency.
const (
	API       Layer = "api"
	Rights    Layer = "rights"
	Objects   Layer = "objects"
	Nodes     Layer = "nodes"
	Gateway   Layer = "gateway"
	Overlay   Layer = "overlay"
	Tunnel    Layer = "tunnel"
	Peer      Layer = "peer"
	Path      Layer = "path"
	Leftovers Layer = "leftovers"
)

// Layers are all layers.
func Layers() []Layer {
	return []Layer{API, Rights, Objects, Nodes, Gateway, Overlay, Tunnel, Peer, Path, Leftovers}
}

// LayerOf returns the layer of a check, which its ID contains: LQ-LAYER-NAME.
func LayerOf(id string) Layer {
	_, layer, _ := strings.Cut(id, "-")
	layer, _, _ = strings.Cut(layer, "-")
	return Layer(strings.ToLower(layer))
}

// spans reports whether failures in the other cluster explain failures of this layer.
func (l Layer) spans() bool { return slices.Contains([]Layer{Tunnel, Peer, Path}, l) }

// Check is a check: a row of the table and a page of the documentation.
type Check struct {
	ID    string
	What  string   // the condition, and the facts that it is checked with
	Needs []string // checks whose failures explain a failure of this one
	Cause string   // likely cause of a failure
	// Fix is the remedy. CONTEXT, REMOTE, NAMESPACE and PEER are replaced by the values of a run.
	Fix string

	reads []fact
	// cluster or side evaluates the facts of a cluster, or of a side of a peering. Findings with the ID as their code
	// decide, too.
	cluster func(*facts) outcome
	side    func(*side) outcome
}

// outcome is the result of a check.
type outcome struct {
	state    State
	observed string
	// names are replacements in the remedy of the check, in pairs of placeholder and value.
	names []string
	hint  string // replaces that remedy; "": none
}

func passed() outcome { return outcome{state: Passed} }

func failed(format string, args ...any) outcome {
	return outcome{state: Failed, observed: fmt.Sprintf(format, args...)}
}

func skipped(why string) outcome { return outcome{state: Skipped, observed: why} }

// warned returns a warning with these observations; passed if there are none.
func warned(seen []string) outcome { return judged(Warning, seen) }

// judged returns the state with these observations; passed if there are none.
func judged(s State, seen []string) outcome {
	if len(seen) == 0 {
		return passed()
	}
	return outcome{state: s, observed: strings.Join(seen, "; ")}
}

// naming sets replacements in the remedy of the check, in pairs of placeholder and value.
func (o outcome) naming(names ...string) outcome {
	o.names = names
	return o
}

func (o outcome) hinted(hint string) outcome {
	o.hint = hint
	return o
}

// inspections are evaluations of facts by which checks of findings fail or warn, too.
func inspections() map[health.Code]Check {
	return map[health.Code]Check{
		health.APIClock:            {reads: []fact{observe.Records}, cluster: (*facts).clocks},
		status.ObjectsDamaged:      {reads: []fact{observe.Records}, cluster: (*facts).damaged},
		status.ObjectsReservations: {reads: []fact{reservations}, cluster: (*facts).reservationsAgree},
		"LQ-NODES-READY":           {reads: []fact{observe.Nodes}, cluster: (*facts).nodesReady},
		"LQ-NODES-REFUSED":         {reads: []fact{observe.Leases, observe.Pods}, side: (*side).refusals},
		"LQ-GATEWAY-RUNNING":       {reads: []fact{peerings, observe.Pods}, side: (*side).gatewaysRun},
		"LQ-TUNNEL-ENCRYPTED":      {reads: []fact{peerings}, side: foundByGateways("LQ-TUNNEL-ENCRYPTED")},
		"LQ-TUNNEL-UDP":            {reads: []fact{peerings}, side: foundByGateways("LQ-TUNNEL-UDP")},
		"LQ-TUNNEL-CONGESTION":     {reads: []fact{peerings}, side: foundByGateways("LQ-TUNNEL-CONGESTION")},
		"LQ-OVERLAY-PROBE":         {reads: []fact{peerings}, side: func(s *side) outcome { return s.found(Warning, "LQ-OVERLAY-PROBE") }},
	}
}

// Table returns all checks: those of this package, and one for each kind of finding, by order of their layers. Each
// comes after the checks that explain its failures.
func Table() []Check {
	var all []Check
	for _, k := range slices.Concat(health.Kinds(), status.Kinds()) {
		c := inspections()[k.Code]
		c.ID, c.What, c.Needs, c.Cause, c.Fix = string(k.Code), k.What, k.Needs, k.Cause, k.Fix
		all = append(all, c)
	}
	all = slices.Concat(all, apiChecks(), objectChecks(), nodeChecks(), gatewayChecks(), tunnelChecks(), peerChecks(), pathChecks(), leftoverChecks())
	slices.SortStableFunc(all, func(a, b Check) int {
		return cmp.Compare(slices.Index(Layers(), LayerOf(a.ID)), slices.Index(Layers(), LayerOf(b.ID)))
	})
	var table []Check
	known := make(map[string]bool)
	for len(all) > 0 {
		next := max(0, slices.IndexFunc(all, func(c Check) bool {
			return !slices.ContainsFunc(c.Needs, func(id string) bool { return !known[id] })
		}))
		known[all[next].ID] = true
		table, all = append(table, all[next]), slices.Delete(all, next, next+1)
	}
	return table
}

// Page returns the documentation of a check, in Markdown.
func (c Check) Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nLayer: %s.\n\n%s\n\n## Likely cause\n\n%s\n\n## What to do\n\n%s\n", c.ID, LayerOf(c.ID), c.What, c.Cause, c.Fix)
	if len(c.Needs) > 0 {
		b.WriteString("\n## Depends on\n\nThis check follows if one of these fails:\n\n")
		for _, n := range c.Needs {
			fmt.Fprintf(&b, "- [%s](%s.md)\n", n, n)
		}
	}
	return b.String()
}

// needs returns the checks of a table whose failures explain a failure of a check, directly or through others, in the
// order of the table.
func needs(table []Check, id string) (all []string) {
	wanted := map[string]bool{id: true}
	for _, c := range slices.Backward(table) {
		if wanted[c.ID] {
			for _, n := range c.Needs {
				wanted[n] = true
			}
		}
	}
	for _, c := range table {
		if wanted[c.ID] && c.ID != id {
			all = append(all, c.ID)
		}
	}
	return all
}

// filled replaces the placeholders of a remedy. Each value is quoted as one word of a shell, as users choose names
// freely.
func (s *side) filled(advice string, names ...string) string {
	pairs := slices.Concat(names, []string{
		"CONTEXT", s.Context, "NAMESPACE", s.Namespace, "PEER", cmp.Or(s.status.Peer, "PEER"), "REMOTE", cmp.Or(s.remote, "REMOTE"),
	})
	for i := 1; i < len(pairs); i += 2 {
		pairs[i] = kube.ShellWord(pairs[i])
	}
	return strings.NewReplacer(pairs...).Replace(advice)
}
