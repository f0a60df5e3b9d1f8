package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/kube"
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

// spans reports whether failures in the other cluster explain failures of this layer.
func (l Layer) spans() bool { return slices.Contains([]Layer{Tunnel, Peer, Path}, l) }

// Check is a check: a row of the table and a page of the documentation.
type Check struct {
	ID    string
	Layer Layer
	What  string   // the condition, and the facts that it is checked with
	Needs []string // checks whose failures explain a failure of this one
	Cause string   // likely cause of a failure
	// Fix is the remedy. CONTEXT, REMOTE, NAMESPACE and PEER are replaced by the values of a run.
	Fix string

	reads []fact
	// cluster or side evaluates the facts of a cluster, or of a side of a peering. Without either, findings of package
	// health decide that have the ID as their code.
	cluster func(*facts) outcome
	side    func(*side) outcome
}

// outcome is the result of a check.
type outcome struct {
	state    State
	observed string
	fix      string // "": that of the check
	// names are replacements in fix, in pairs of placeholder and value.
	names []string
	hint  string // hint of an error, which replaces fix; "": none
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

// advise replaces the remedy of the check. names are pairs of placeholder and value.
func (o outcome) advise(fix string, names ...string) outcome {
	o.fix, o.names = fix, names
	return o
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

// Table returns all checks. Each comes after the checks that explain its failures.
func Table() []Check {
	return slices.Concat(apiChecks(), objectChecks(), rangeChecks(), nodeChecks(), gatewayChecks(), overlayChecks(), tunnelChecks(), peerChecks(), pathChecks(), leftoverChecks())
}

// needs returns the checks whose failures explain a failure of a check, directly or through others, in the order of the
// table.
func needs(id string) (all []string) {
	table := Table()
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
func (f *facts) filled(advice, peer string, names []string) string {
	pairs := append([]string{
		"CONTEXT", f.Context, "NAMESPACE", f.Namespace, "PEER", cmp.Or(peer, "PEER"), "REMOTE", cmp.Or(f.remote, "REMOTE"),
	}, names...)
	for i := 1; i < len(pairs); i += 2 {
		pairs[i] = kube.ShellWord(pairs[i])
	}
	return strings.NewReplacer(pairs...).Replace(advice)
}
