package status

import (
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/records"
)

// Disagreement is a value that differs between the two clusters of a peering.
type Disagreement struct {
	About  string `json:"about"` // such as "MTU"
	Local  string `json:"local"` // value in the local cluster
	Remote string `json:"remote"`
}

// Disagreements compares the states of a peering in its two clusters. A value that one of them does not know is no
// disagreement.
func Disagreements(local, remote Peering) []Disagreement {
	// Each cluster chooses the CIDRs by which it reaches the peer. The peer has a copy of them.
	chosenByLocal, copyOfRemote := differing(local.Addresses, remote.OwnAddresses)
	chosenByRemote, copyOfLocal := differing(remote.Addresses, local.OwnAddresses)
	return slices.DeleteFunc([]Disagreement{
		{"state", string(local.State), string(remote.State)},
		{"name of " + local.Cluster, local.Cluster, remote.Peer},
		{"name of " + remote.Cluster, local.Peer, remote.Cluster},
		{"WireGuard server", server(local), server(remote)},
		{"MTU", size(local.MTU.Value), size(remote.MTU.Value)},
		{"CIDRs of " + remote.Cluster, chosenByLocal, copyOfRemote},
		{"CIDRs of " + local.Cluster, copyOfLocal, chosenByRemote},
	}, func(d Disagreement) bool { return d.Local == "" || d.Remote == "" || d.Local == d.Remote })
}

// server returns the name of the cluster with the WireGuard server, according to one cluster's record.
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

// differing returns the ranges that only one of two lists has, as text; "" for a list that is empty, or has no others.
func differing(a, b []AddressRange) (onlyA, onlyB string) {
	only := func(some, others []AddressRange) string {
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
