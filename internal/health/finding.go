package health

import (
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/seconds"
)

// Code identifies a kind of finding; docs/checks has a page for each.
type Code string

// Level is what a finding means for the state of a peering. A higher one prevails.
type Level int

// The levels.
const (
	Note    Level = iota // follows from another finding, or loses no packets
	Warning              // part of the reason, but does not change the state
	levelDegraded
	levelConnecting
	levelUnknown
	levelDown
)

// states has the state of each level.
var states = [...]State{Note: Healthy, Warning: Healthy, levelDegraded: Degraded, levelConnecting: Connecting, levelUnknown: Unknown, levelDown: Down}

// levelTexts has the text of each level: "note", "warning", or the state.
var levelTexts = [...]string{
	Note: "note", Warning: "warning", levelDegraded: string(Degraded), levelConnecting: string(Connecting), levelUnknown: string(Unknown), levelDown: string(Down),
}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(levelTexts[l]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(text []byte) error {
	i := slices.Index(levelTexts[:], string(text))
	if i < 0 {
		return fmt.Errorf("level %q: want note, warning or a state", text)
	}
	*l = Level(i)
	return nil
}

// Subject is what a finding is about. Empty fields do not apply.
type Subject struct {
	Gateway int    `json:"gateway,omitzero"` // its number
	Tunnel  int    `json:"tunnel,omitzero"`  // number of the peer's gateway; 0 with a code of tunnels: all of them
	Node    string `json:"node,omitzero"`
}

// Figures are the measurements of a finding. Those that are zero do not apply.
type Figures struct {
	Age    seconds.Duration `json:"ageSeconds,omitzero"` // since the last sign
	Loss   float64          `json:"loss,omitzero"`       // 0 to 1
	Size   int              `json:"size,omitzero"`       // bytes, of the packets that fit a hop, with encapsulation
	Needed int              `json:"needed,omitzero"`     // bytes, of those that must cross, without it
}

// Finding is a deviation from a peering on which all packets cross.
type Finding struct {
	Code    Code    `json:"code"`
	Level   Level   `json:"severity"`
	Subject Subject `json:"subject,omitzero"`
	Figures Figures `json:"figures,omitzero"`
	Text    string  `json:"message"` // one clause for people, without cause and remedy

	// format is Text with %s for the name of the node: findings that differ only in that become one clause.
	format string
	// several is set if the finding is about one of several tunnels of the gateway.
	several bool
}

// ofNode makes a finding about a node, whose name replaces %s in the format.
func ofNode(level Level, name, format string) Finding {
	return Finding{Level: level, Subject: Subject{Node: name}, Text: strings.Replace(format, "%s", name, 1), format: format}
}

// StateOf returns the state that follows from findings: that of the highest level; healthy if there are none.
func StateOf(findings []Finding) State {
	highest := Note
	for _, f := range findings {
		highest = max(highest, f.Level)
	}
	return states[highest]
}

// Reason joins what findings above Note say. If a peering has several gateways which differ in it, each clause names
// its gateway.
func Reason(findings []Finding, gateways int) string {
	texts := make([]string, 1+max(gateways, 1)) // by number of the gateway; 0: of none
	for number := range texts {
		texts[number] = clauses(findings, number)
	}
	own := texts[1:]
	if len(slices.Compact(slices.Clone(own))) == 1 {
		return joined(texts[0], own[0])
	}
	for i, text := range own {
		if text != "" {
			own[i] = fmt.Sprintf("gateway %d: %s", i+1, text)
		}
	}
	return joined(texts...)
}

// clauses joins what findings about one gateway say; those about several nodes are one clause.
func clauses(findings []Finding, gateway int) string {
	var texts []string
	for i := 0; i < len(findings); i++ {
		f := findings[i]
		if f.Subject.Gateway != gateway || f.Level == Note {
			continue
		}
		names := []string{f.Subject.Node}
		for f.format != "" && i+1 < len(findings) && findings[i+1].Subject.Gateway == gateway && findings[i+1].Code == f.Code && findings[i+1].format == f.format {
			i++
			names = append(names, findings[i].Subject.Node)
		}
		if len(names) > 1 {
			f.Text = strings.Replace(f.format, "%s", strings.Join(names, ", "), 1)
		}
		if f.several {
			f.Text = fmt.Sprintf("tunnel to gateway %d of the peer: %s", f.Subject.Tunnel, f.Text)
		}
		texts = append(texts, f.Text)
	}
	return joined(texts...)
}

func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "; ")
}

// With returns the findings of some codes.
func With(findings []Finding, codes ...Code) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return !slices.Contains(codes, f.Code) })
}

// atMost lowers levels.
func atMost(level Level, findings []Finding) {
	for i := range findings {
		findings[i].Level = min(findings[i].Level, level)
	}
}
