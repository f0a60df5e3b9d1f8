package removal

import (
	"net/netip"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
)

// Disconnection is what Disconnect removed. A side that was not asked for is nil.
type Disconnection struct {
	Local   *Removed             `json:"local,omitempty"`
	Remote  *Removed             `json:"remote,omitempty"`
	Stages  []progress.StageTime `json:"stages"`
	Changed bool                 `json:"changed"`
}

// Removed is what was removed from one cluster.
type Removed struct {
	Context  string          `json:"context"`
	Peerings []string        `json:"peerings"`           // none: there was nothing
	Released []ReleasedRange `json:"released,omitempty"` // ranges that are free again
	Objects  []kube.Change   `json:"objects,omitempty"`  // those that were deleted
}

// ReleasedRange is a range that is free again.
type ReleasedRange struct {
	Range netip.Prefix `json:"range"`
	Use   string       `json:"use"`
}

// ResetResult is what Reset removed, and what remains; nil: not verified, as the nodes belong to another installation.
type ResetResult struct {
	Removed
	Remains *Remains             `json:"remains,omitempty"`
	Stages  []progress.StageTime `json:"stages"`
	Changed bool                 `json:"changed"`
}

// altered reports whether anything was removed.
func (r Removed) altered() bool { return len(r.Objects) > 0 || len(r.Released) > 0 }
