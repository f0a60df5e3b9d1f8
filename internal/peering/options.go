package peering

import (
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// Installation is what is decided for a cluster as a whole.
type Installation struct {
	// Image is the container image of the helpers.
	Image string
	// Pods are the settings for the helpers' pods. What they leave open stays as it is in the cluster.
	Pods templates.Pods
	// Overlay is the encapsulation to use. "": what the cluster uses already, else the best that all nodes have.
	Overlay records.OverlayKind
	// OverlayPort is its UDP port. 0: that which the cluster uses already, else records.DefaultOverlayPort.
	OverlayPort uint16
	// Update allows changes to what exists. Without it, differences are a *DifferenceError.
	Update bool
	// SkipValidation leaves out the check of the user's permissions, and makes warnings of what is known to break
	// connections: firewalls of nodes, settings of network plugins, a Liqo that runs.
	SkipValidation bool
	// AllNodes makes it a failure when a Ready node cannot take part.
	AllNodes bool
	// AllowForward says whether node helpers add rules to such firewalls; nil: as it is.
	AllowForward *bool
}

// InitOptions are the options of Init.
type InitOptions struct {
	Side Side
	Installation
	Timeout time.Duration // for all of it; 0: steps.TimeLimit
}

// Options are those of a peering. What they leave open, by nil or the zero value, stays as it is. In a new peering it
// is the default.
type Options struct {
	// LocalServes makes the local cluster the tunnel's server, or the remote one: the default.
	LocalServes *bool
	// Service is that of the server's gateways; by default of type LoadBalancer. The load balancer's address 0.0.0.0 is
	// none.
	Service templates.ServiceValues
	// GatewayMode says which gateways nodes send to: by default all.
	GatewayMode records.GatewayMode
	// ClientAddress (an address or a DNS name) and ClientPort, that of the first tunnel, replace what the client would
	// learn of the server's Service. "" and 0, the defaults: they do not.
	ClientAddress  *string
	ClientPort     *uint16
	Implementation records.Implementation // of WireGuard; by default records.Auto
	MTU            *int                   // of inner packets, bytes; 0, the default: what fits every hop
	ClampMSS       *bool                  // by default true
}

// ConnectOptions are the options of Connect.
type ConnectOptions struct {
	Local, Remote Side
	Installation
	Options
	Keep    bool          // a failure leaves what was made, to be looked at
	Timeout time.Duration // for all of it; 0: steps.TimeLimit, by the larger cluster
}
