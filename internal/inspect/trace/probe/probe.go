// Package probe is the part of network trace that runs in the namespaces of nodes and gateways: it queries the routes
// of the kernel, traces packets in the kernel, and sends one. It does not depend on the cluster or the records.
package probe

import (
	"net/netip"
	"time"
)

// Flow is the packets from one address to another.
type Flow struct {
	Protocol string         `json:"protocol"` // tcp, udp or icmp
	From     netip.AddrPort `json:"from"`
	To       netip.AddrPort `json:"to"`
}

// Lookup is a packet whose route is looked up.
type Lookup struct {
	From netip.Addr `json:"from"`
	To   netip.Addr `json:"to"`
	// Link is the link by which the packet comes; "": this host sends it. Pod: the link that leads to the sender.
	Link string `json:"link,omitempty"`
	Pod  bool   `json:"pod,omitempty"`
}

// Question is the input of a probe in one place.
type Question struct {
	Flows  []Flow  `json:"flows"`
	Lookup *Lookup `json:"lookup,omitempty"`
	Send   bool    `json:"send,omitempty"` // a packet of the first flow
}

// Commands for a probe, one a line, and the line that it writes when it is ready for them.
const (
	Ready = "ready"
	Send  = "send"
	Stop  = "stop"
)

// Sighting is a packet that the kernel traced.
type Sighting struct {
	Time time.Time  `json:"time"` // by the clock of the place
	From netip.Addr `json:"from"` // at the first observation
	To   netip.Addr `json:"to"`
	In   string     `json:"in,omitempty"` // link by which it came; "": this host sends it
	// LeftFrom and LeftTo are the addresses with which it left or was delivered here; zero if neither happened.
	LeftFrom netip.Addr `json:"leftFrom,omitzero"`
	LeftTo   netip.Addr `json:"leftTo,omitzero"`
	Out      string     `json:"out,omitempty"` // link by which it left; "": none
	// Chains are the chains that decided, in order.
	Chains  []string `json:"chains"`
	Dropped string   `json:"dropped,omitempty"` // the chain that dropped it; "": no drop by nftables
}

// Report is the result of a probe in one place.
type Report struct {
	Route string `json:"route,omitempty"`
	Link  string `json:"link,omitempty"` // by which the kernel sends the packet; "", with a route: rejected
	// Detour is the rule and the route that reject the packet or, at its sender, lead it elsewhere than to the overlay;
	// "" if there are none.
	Detour    string     `json:"detour,omitempty"`
	Sightings []Sighting `json:"sightings,omitempty"`
	Errors    []string   `json:"errors,omitempty"` // of lookups and packets that failed
}
