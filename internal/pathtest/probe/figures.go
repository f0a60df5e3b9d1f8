package probe

import (
	"encoding/json"
	"fmt"
)

// Figures are the results of measuring a path.
type Figures struct {
	// Stream and Streams are the received bits per second, of one TCP stream and of all of them.
	Stream  float64 `json:"streamBitsPerSecond"`
	Streams float64 `json:"streamsBitsPerSecond"`
	// P50 to P99 are percentiles of the round-trip times of small messages on an open TCP connection, in seconds.
	P50 float64 `json:"p50Seconds"`
	P90 float64 `json:"p90Seconds"`
	P99 float64 `json:"p99Seconds"`
	// Connections is the number of TCP connections per second that were opened, used and closed.
	Connections float64 `json:"connectionsPerSecond"`
}

// Measured is the report of a measurement: figures, or the reason for which there are none.
type Measured struct {
	*Figures
	Failed string `json:"failed,omitempty"`
}

// DecodeMeasured reads the termination message of a measurement.
func DecodeMeasured(message string) (m Measured, err error) {
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		return m, fmt.Errorf("decode report: %w", err)
	}
	if m.Figures == nil && m.Failed == "" {
		return m, fmt.Errorf("decode report: no figures in %.100q", message)
	}
	return m, nil
}
