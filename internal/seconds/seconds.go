// Package seconds writes durations in JSON, as all answers of commands have them.
package seconds

import (
	"encoding/json"
	"math"
	"time"
)

// Duration is a duration, which JSON has in seconds.
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).Seconds()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var number float64
	err := json.Unmarshal(text, &number)
	*d = Duration(math.Round(number * float64(time.Second)))
	return err
}
