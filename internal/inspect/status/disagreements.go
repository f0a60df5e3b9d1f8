package status

import (
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/records"
)

// Disagreement is something that the two clusters of a peering state differently.
type Disagreement struct {
	About  string `json:"about"` // such as "MTU"
	Local  string `json:"local"` // what the local cluster states
	Remote string `json:"remote"`
}

// Disagreements compares what the two clusters of a peering state of it. What one of them does not know is no
// disagreement.
func Disagreements(local, remote Peering) []Disagreement {
	// Each cluster decides how it reaches the other's ranges, and the other has a copy of that.
	there, theirCopy := differing(local.Mappings, remote.OwnMappings)
	here, ourCopy := differing(remote.Mappings, local.OwnMappings)
	return slices.DeleteFunc([]Disagreement{
		{"state", string(local.State), string(remote.State)},
		{"name of " + local.Cluster, local.Cluster, remote.Peer},
		{"name of " + remote.Cluster, local.Peer, remote.Cluster},
		{"WireGuard server", server(local), server(remote)},
		{"MTU", size(local.MTU), size(remote.MTU)},
		{"CIDRs of " + remote.Cluster, there, theirCopy},
		{"CIDRs of " + local.Cluster, ourCopy, here},
	}, func(d Disagreement) bool { return d.Local == "" || d.Remote == "" || d.Local == d.Remote })
}

// server is the cluster of the WireGuard server, by what one of the two states.
func server(p Peering) string {
	switch p.Role {
	case records.Server:
		return p.Cluster
	case records.Client:
		return p.Peer
	}
	return ""
}

func size(mtu int) string {
	if mtu == 0 {
		return ""
	}
	return fmt.Sprint(mtu)
}

// differing are the ranges that only one of two lists has, as text; "" where a list is not known.
func differing(a, b []MappedRange) (onlyA, onlyB string) {
	only := func(some, others []MappedRange) string {
		if len(some) == 0 {
			return ""
		}
		texts := []string{}
		for _, m := range some {
			if !slices.Contains(others, m) {
				texts = append(texts, m.String())
			}
		}
		if len(texts) == 0 {
			return "no others"
		}
		return strings.Join(texts, ", ")
	}
	return only(a, b), only(b, a)
}
