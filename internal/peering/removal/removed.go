package removal

import (
	"net/netip"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
)

// Disconnection is the result of Disconnect. A cluster that was not requested is nil.
type Disconnection struct {
	Local   *Removed             `json:"local,omitempty"`
	Remote  *Removed             `json:"remote,omitempty"`
	Stages  []progress.StageTime `json:"stages"`
	Changed bool                 `json:"changed"`
}

// Removed lists what was removed from one cluster.
type Removed struct {
	Context  string          `json:"context"`
	Peerings []string        `json:"peerings"`           // none: there was no peering
	Released []ReleasedRange `json:"released,omitempty"` // ranges whose reservations were released
	Objects  []kube.Change   `json:"objects,omitempty"`  // deleted objects
}

// ReleasedRange is a range whose reservation was released.
type ReleasedRange struct {
	Range netip.Prefix `json:"range"`
	Use   string       `json:"use"`
}

// ResetResult is the result of Reset. Remains is nil if the nodes are not verified, because they belong to another
// installation.
type ResetResult struct {
	Removed
	Remains *Remains             `json:"remains,omitempty"`
	Stages  []progress.StageTime `json:"stages"`
	Changed bool                 `json:"changed"`
}

// altered reports whether anything was removed.
func (r Removed) altered() bool { return len(r.Objects) > 0 || len(r.Released) > 0 }
