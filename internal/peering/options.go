package peering

import (
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// Installation has the options of a cluster's installation.
type Installation struct {
	// Image is the container image of the helpers. "": the cluster's current one if NoImage is set, which is why a
	// cluster without liqonet has none.
	Image   string
	NoImage error
	// Pods are the settings for the helpers' pods. Unset ones keep the cluster's current value.
	Pods templates.Pods
	// Overlay is the encapsulation. "": the cluster's current one, else the best that all nodes support.
	Overlay records.OverlayKind
	// OverlayPort is its UDP port. 0: the cluster's current one, else records.DefaultOverlayPort.
	OverlayPort uint16
	// Update allows changes to an existing configuration. Without it, differences are a *DifferenceError.
	Update bool
	// SkipValidation makes known incompatibilities warnings: firewalls of nodes, settings of network plugins, a running
	// Liqo.
	SkipValidation bool
	// AllNodes makes it an error if a Ready node is not verified.
	AllNodes bool
	// AllowForward has node helpers add rules to such firewalls; nil: the current value.
	AllowForward *bool
}

// InitOptions are the options of Init.
type InitOptions struct {
	Side Side
	Installation
	Timeout time.Duration // total; 0: progress.TimeLimit
}

// Options are the options of a peering. nil keeps the current value; in a new peering it is the default.
type Options struct {
	// LocalServes selects the WireGuard server: the local cluster, or the remote one, which is the default.
	LocalServes *bool
	records.GatewaySettings
}

// ConnectOptions are the options of Connect.
type ConnectOptions struct {
	Local, Remote Side
	Installation
	Options
	Keep    bool          // do not roll back on failure
	Timeout time.Duration // total; 0: progress.TimeLimit of the larger cluster
}
