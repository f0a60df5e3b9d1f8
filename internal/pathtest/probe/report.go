// Package probe is the part of a path test that runs in clusters: servers that answer (Serve), and probes that ask them
// (Ask) and report what they saw. Neither needs a privilege. What the answers should have been is decided outside.
package probe

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"
)

// Check is one of the checks of a target.
type Check string

// The checks.
const (
	TCP        Check = "tcp"        // 100 kB arrive unaltered
	UDP        Check = "udp"        // a small datagram is answered
	Ping       Check = "ping"       // an ICMP echo request is answered
	FullSize   Check = "full-size"  // a packet of the path MTU arrives with "don't fragment"
	Oversize   Check = "oversize"   // one byte more is refused with an error
	Fragments  Check = "fragments"  // a datagram of 4000 bytes arrives, in fragments
	Connection Check = "connection" // a TCP connection stays open
)

// MaxTargets is how many servers a probe asks: what it reports must fit into maxReport.
const MaxTargets = 16

// MaxStreams is how many TCP streams a measurement may have at once.
const MaxStreams = 64

// maxReport is what Kubernetes keeps of a container's termination message, in bytes.
const maxReport = 4096

// Target is what a probe asks.
type Target struct {
	Name    string // in the report
	Address netip.AddrPort
	Node    string // that must answer; "": any
	Token   string // of the test in the cluster that answers
	Checks  []Check
}

// Result is what a probe saw of a target.
type Result struct {
	Target string `json:"t"`
	// Source is the address of the probe as the target saw it. The zero value: no answer.
	Source netip.Addr `json:"s,omitzero"`
	// Failed says what was seen instead of what the check expects.
	Failed map[Check]string `json:"f,omitempty"`
	// Skipped says why a check could not be made.
	Skipped map[Check]string `json:"k,omitempty"`
	// Gap is the longest time between two answers on the open connection.
	Gap time.Duration `json:"g,omitempty"`
}

// Encode writes results as a termination message. Texts are shortened until all of it fits.
func Encode(results []Result) (string, error) {
	for longest := 200; longest > 0; longest /= 2 {
		for _, r := range results {
			for check, text := range r.Failed {
				r.Failed[check] = text[:min(len(text), longest)]
			}
			for check, text := range r.Skipped {
				r.Skipped[check] = text[:min(len(text), longest)]
			}
		}
		data, err := json.Marshal(results)
		if err != nil {
			return "", fmt.Errorf("encode report: %w", err)
		}
		if len(data) <= maxReport {
			return string(data), nil
		}
	}
	return "", fmt.Errorf("encode report: %d results exceed %d bytes", len(results), maxReport)
}

// Decode reads the termination message of a probe.
func Decode(message string) ([]Result, error) {
	var results []Result
	if err := json.Unmarshal([]byte(message), &results); err != nil {
		return nil, fmt.Errorf("decode report: %w", err)
	}
	return results, nil
}
