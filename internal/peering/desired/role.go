package desired

import (
	"fmt"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// Choose returns the role and, in the server's cluster, the settings. It needs what the peer has recorded.
func (h Half) Choose() (role records.Role, s records.GatewaySettings, err error) {
	if role, err = h.role(); err != nil || role == records.Client {
		return role, s, err
	}
	var recorded records.GatewaySettings
	moved := false
	switch far := h.Peer.Recorded; { // if they differ, the server's record takes precedence
	case h.Recorded != nil:
		recorded, moved = h.Recorded.Settings, h.Recorded.Role != records.Server
	case far != nil:
		recorded, moved = far.Settings, far.Role != records.Client
	}
	if s, err = h.Wanted.Settings.Decide(recorded, moved); err != nil {
		return role, s, &progress.InputError{Err: err, Advice: hint.Of(err)}
	}
	return role, s, nil
}

// role returns the role that the user wants, else the one in the records.
func (h Half) role() (records.Role, error) {
	far := h.Peer.Recorded
	server := h.Wanted.Initial == records.Server
	switch {
	case h.Wanted.Serves != nil:
		server = *h.Wanted.Serves
	case h.Recorded != nil && far != nil && h.Recorded.Role == far.Role:
		return "", hint.With(fmt.Errorf("both clusters have the role %s in their peering", far.Role), "liqoctl network connect --update --server-side remote, or local")
	case h.Recorded != nil:
		server = h.Recorded.Role == records.Server
	case far != nil:
		server = far.Role == records.Client
	}
	if server {
		return records.Server, nil
	}
	return records.Client, nil
}

// AgreedSettings returns the settings of both clusters, and rejects what the peer has decided otherwise.
func (h Half) AgreedSettings() (s records.GatewaySettings, err error) {
	switch peer := h.Peer.Cluster.Name; {
	case h.Peer.Role == h.Role:
		return s, fmt.Errorf("both clusters of peering %q would be the %s", h.Peering, h.Role)
	case h.Role == records.Client && h.Peer.Settings == nil:
		return s, fmt.Errorf("offer of cluster %q: no settings", peer)
	case len(h.Peer.Ranges.ExternalCIDRs) == 0 || len(h.Peer.Gateways) == 0:
		return s, fmt.Errorf("offer of cluster %q: no ranges or no gateways", peer)
	case h.Role == records.Client:
		return *h.Peer.Settings, h.checkPlain(*h.Peer.Settings)
	}
	return h.Settings, h.checkPlain(h.Settings) // without a record here, the peer's has decided
}
