// Package probe is the part of a path test that runs in clusters: servers that answer (Serve), and probes that query
// them (Ask) and report the results. Neither needs a privilege. Package pathtest evaluates the results.
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
	Oversize   Check = "oversize"   // one byte more is rejected with an error
	Fragments  Check = "fragments"  // a datagram of 4000 bytes arrives, in fragments
	Connection Check = "connection" // a TCP connection stays open
)

// MaxTargets is the maximum number of targets of a probe: its report must fit into maxReport.
const MaxTargets = 16

// MaxStreams is the maximum number of concurrent TCP streams of a measurement.
const MaxStreams = 64

// maxReport is the size of a container's termination message that Kubernetes stores, in bytes.
const maxReport = 4096

// Target is a server that a probe queries.
type Target struct {
	Name    string // in the report
	Address netip.AddrPort
	Node    string // expected node of the answer; "": any
	Token   string // of the test in the target's cluster
	Checks  []Check
}

// Result is a probe's result for a target.
type Result struct {
	Target string `json:"t"`
	// Source is the address of the probe as the target observed it. The zero value: no answer.
	Source netip.Addr `json:"s,omitzero"`
	// Failed has the observation for each failed check.
	Failed map[Check]string `json:"f,omitempty"`
	// Skipped has the reason for each check that could not be made.
	Skipped map[Check]string `json:"k,omitempty"`
	// Gap is the longest time between two answers on the open connection.
	Gap time.Duration `json:"g,omitempty"`
}

// Encode encodes results as a termination message. It shortens texts until the message fits.
func Encode(results []Result) (string, error) {
	for longest := 200; longest > 0; longest /= 2 {
		for _, r := range results {
			for _, texts := range []map[Check]string{r.Failed, r.Skipped} {
				for check, text := range texts {
					texts[check] = text[:min(len(text), longest)]
				}
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

// Decode decodes the termination message of a probe.
func Decode(message string) ([]Result, error) {
	var results []Result
	if err := json.Unmarshal([]byte(message), &results); err != nil {
		return nil, fmt.Errorf("decode report: %w", err)
	}
	return results, nil
}
