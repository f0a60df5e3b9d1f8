package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cluster"
)

// Layer is what a check is about.
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

// spans reports whether failures of the other cluster explain those of this layer.
func (l Layer) spans() bool { return slices.Contains([]Layer{Tunnel, Peer, Path}, l) }

// Check is a check: a line of the table, and a page of the documentation.
type Check struct {
	ID    string
	Layer Layer
	What  string   // is checked, with what facts
	Needs []string // checks whose failure explains that of this one
	Cause string   // the likely one of a failure
	// Fix is what to do about it. CONTEXT, REMOTE, NAMESPACE and PEER stand for what a run knows.
	Fix string

	reads []fact
	// cluster or side judges the facts of a cluster, or of a side of a peering.
	cluster func(*facts) outcome
	side    func(*side) outcome
}

// outcome is what a check has found.
type outcome struct {
	state State
	seen  string
	fix   string // "": the check's own
	// names stand for others in fix, in pairs: what, and what it is called here.
	names []string
	hint  string // advice of an error, in the place of fix; "": none
}

func passed() outcome { return outcome{state: Passed} }

func failed(format string, args ...any) outcome {
	return outcome{state: Failed, seen: fmt.Sprintf(format, args...)}
}

func skipped(why string) outcome { return outcome{state: Skipped, seen: why} }

// warned is a warning with these observations; it has passed if there are none.
func warned(seen []string) outcome { return judged(Warning, seen) }

// judged has that state with these observations; it has passed if there are none.
func judged(s State, seen []string) outcome {
	if len(seen) == 0 {
		return passed()
	}
	return outcome{state: s, seen: strings.Join(seen, "; ")}
}

// advise replaces the check's own advice. names are further words of it, each with the name that it stands for.
func (o outcome) advise(fix string, names ...string) outcome {
	o.fix, o.names = fix, names
	return o
}

func (o outcome) hinted(hint string) outcome {
	o.hint = hint
	return o
}

// Table has all checks, each behind those that explain its failures.
func Table() []Check {
	return slices.Concat(apiChecks(), objectChecks(), nodeChecks(), gatewayChecks(), overlayChecks(), tunnelChecks(), peerChecks(), pathChecks(), leftoverChecks())
}

// needs are the checks whose failures explain that of a check, directly or through others, those that come first in
// front.
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

// filled is an advice with what a run knows. Each name is one word of a shell, whoever has chosen it.
func filled(advice string, c *cluster.Cluster, peer, remote string, names []string) string {
	pairs := append([]string{
		"CONTEXT", c.Context, "NAMESPACE", c.Namespace, "PEER", cmp.Or(peer, "PEER"), "REMOTE", cmp.Or(remote, "REMOTE"),
	}, names...)
	for i := 1; i < len(pairs); i += 2 {
		pairs[i] = cluster.ShellWord(pairs[i])
	}
	return strings.NewReplacer(pairs...).Replace(advice)
}
