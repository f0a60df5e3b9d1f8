package records

import (
	"errors"
	"fmt"
	"time"
)

// Drift is what other hands changed of ours in one kernel, and its helper brought back, since that helper began.
// The zero value: nothing.
type Drift struct {
	Times int64     `json:"times"`         // how often something was brought back
	Last  time.Time `json:"last,omitzero"` // when that was last
	What  string    `json:"what"`          // the object that came back last, as the helper's log calls it
}

// maxDriftText bounds what a node says, in bytes: a gateway repeats it for every node.
const maxDriftText = 200

// Noted returns the drift after objects came back once more, at a time.
func (d Drift) Noted(at time.Time, objects []string) Drift {
	if len(objects) == 0 {
		return d
	}
	what := objects[0]
	if len(what) > maxDriftText/2 {
		what = what[:maxDriftText/2] + " …"
	}
	if more := len(objects) - 1; more > 0 {
		what = fmt.Sprintf("%s, and %d more", what, more)
	}
	return Drift{Times: d.Times + 1, Last: at, What: what}
}

func (d Drift) validate() error {
	if d.Times < 0 {
		return fmt.Errorf("drift: %d times: want 0 or more", d.Times)
	}
	if len(d.What) > maxDriftText {
		return errors.New("drift: text too long")
	}
	return nil
}
