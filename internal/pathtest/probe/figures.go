package probe

import (
	"encoding/json"
	"fmt"
	"time"
)

// Figures are what a measurement of a path found.
type Figures struct {
	// Stream and Streams are bits a second that arrived, by one TCP stream and by all of them.
	Stream  float64 `json:"streamBitsPerSecond"`
	Streams float64 `json:"streamsBitsPerSecond"`
	// Round trips of small messages on an open TCP connection: half of them took less than P50, and one of a hundred
	// more than P99.
	P50 time.Duration `json:"p50Nanoseconds"`
	P90 time.Duration `json:"p90Nanoseconds"`
	P99 time.Duration `json:"p99Nanoseconds"`
	// Connections are TCP connections a second that were opened, used and closed.
	Connections float64 `json:"connectionsPerSecond"`
}

// Measured is the report of a measurement: figures, or why there are none.
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
