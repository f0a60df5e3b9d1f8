package peering

import (
	"strings"
	"sync"

	"liqonet.io/liqonet/internal/progress"
)

// once is a Reporter that omits what it has reported before, such as a note about a cluster of several peerings.
type once struct {
	progress.Reporter
	reported sync.Map // by text
}

// Note implements progress.Reporter.
func (o *once) Note(text string) {
	if _, before := o.reported.LoadOrStore(text, true); !before {
		o.Reporter.Note(text)
	}
}

// Warn implements progress.Reporter.
func (o *once) Warn(text, hint string) {
	if _, before := o.reported.LoadOrStore(text, true); !before {
		o.Reporter.Warn(text, hint)
	}
}

// part is the Reporter of one of several operations that run at the same time: it omits stages.
type part struct {
	progress.Reporter
	name string
}

// about returns a Reporter that names the subject of texts that name no cluster.
func about(r progress.Reporter, name string) progress.Reporter {
	return part{progress.Planning(r), name}
}

func (p part) named(text string) string {
	if strings.HasPrefix(text, `cluster "`) {
		return text
	}
	return p.name + ": " + text
}

// Note implements progress.Reporter.
func (p part) Note(text string) { p.Reporter.Note(p.named(text)) }

// Warn implements progress.Reporter.
func (p part) Warn(text, hint string) { p.Reporter.Warn(p.named(text), hint) }
