package records

import (
	"errors"
	"fmt"
	"time"
)

// Drift counts external changes to liqonet's objects in one kernel that its helper restored since the helper started.
// The zero value: none.
type Drift struct {
	Times int64     `json:"times"`         // number of passes that restored something
	Last  time.Time `json:"last,omitzero"` // time of the last of them
	What  string    `json:"what"`          // the object restored last, as named in the helper's log
}

// maxDriftText limits a node's text, in bytes: a gateway repeats it for every node.
const maxDriftText = 200

// Add returns the drift after a pass at the given time that restored these objects.
func (d Drift) Add(at time.Time, objects []string) Drift {
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
