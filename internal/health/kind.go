package health

import "slices"

// Kind is a kind of finding. Its declaration has all that is known of it, so that a new one is one declaration in one
// file: the function that finds it, and the texts of its check in `network diagnose` and of its page in docs/checks.
type Kind struct {
	Code  Code     // LQ-LAYER-NAME
	What  string   // the condition that holds unless there is a finding
	Needs []string // IDs of checks whose failures explain a finding
	Cause string   // likely cause
	// Fix is the remedy. CONTEXT, REMOTE, NAMESPACE and PEER are replaced by the values of a run.
	Fix string

	// find returns the findings about a gateway, without codes. It is nil if another package finds them.
	find func(*gateway) []Finding
	// late has find evaluate a gateway whose last report is late or missing, too.
	late bool
	// cutOff is the highest level of these findings while no tunnel of the gateway works; with the zero value, Note,
	// they follow from that.
	cutOff Level
}

// Update is a remedy: it writes the objects and settings of a peering again.
const Update = "liqoctl network connect --context CONTEXT --remote-context REMOTE --update"

// kinds are in the order in which the reason for a state lists its findings: causes before what may follow from them.
var kinds = slices.Concat(gatewayKinds, nodeKinds, tunnelKinds, pathKinds)

// Kinds returns all kinds of findings about gateways.
func Kinds() []Kind { return slices.Clone(kinds) }

// gateway is the input of find.
type gateway struct {
	Observation

	late             bool      // the last report is late, or there is none
	cut              bool      // no tunnel works
	broken           []Finding // about the tunnels that do not work
	silent, unproven []string  // nodes: see Missing
}

// Gateway returns what is found about a gateway. All ages except the report's own are relative to the report's time, so
// that they do not depend on synchronized clocks.
func Gateway(o Observation) (findings []Finding) {
	g := gateway{Observation: o, late: o.Status == nil || Late(o.Age, o.Every)}
	if !g.late {
		g.broken, g.cut = broken(o.Status)
		g.silent, g.unproven = Missing(o.Status, o.Nodes)
	}
	for _, k := range kinds {
		if g.late && !k.late {
			continue
		}
		for _, f := range k.find(&g) {
			f.Code = k.Code
			if g.cut {
				f.Level = min(f.Level, k.cutOff)
			}
			findings = append(findings, f)
		}
	}
	return findings
}
