// Package probe is the part of network trace that runs in the namespaces of nodes and gateways: it asks the kernel for
// its routes, has it trace packets, and sends one. It knows neither the cluster nor the records.
package probe

import (
	"net/netip"
	"time"
)

// Flow are packets from one address to another.
type Flow struct {
	Protocol string         `json:"protocol"` // tcp, udp or icmp
	From     netip.AddrPort `json:"from"`
	To       netip.AddrPort `json:"to"`
}

// Lookup is a packet for which the kernel is asked.
type Lookup struct {
	From netip.Addr `json:"from"`
	To   netip.Addr `json:"to"`
	// Link is that by which the packet comes; "": this host sends it. Pod: that which leads to the sender.
	Link string `json:"link,omitempty"`
	Pod  bool   `json:"pod,omitempty"`
}

// Question is what is asked in one place.
type Question struct {
	Flows  []Flow  `json:"flows"`
	Lookup *Lookup `json:"lookup,omitempty"`
	Send   bool    `json:"send,omitempty"` // a packet of the first flow
}

// Commands that a probe reads, a line each, and its line when it is ready for them.
const (
	Ready = "ready"
	Send  = "send"
	Stop  = "stop"
)

// Sighting is a packet that the kernel has seen.
type Sighting struct {
	Time time.Time  `json:"time"` // by the clock of the place
	From netip.Addr `json:"from"` // when it was first seen
	To   netip.Addr `json:"to"`
	In   string     `json:"in,omitempty"` // link by which it came; "": this host sends it
	// LeftFrom and LeftTo are the addresses with which it left, or was delivered here; they are zero where it did not.
	LeftFrom netip.Addr `json:"leftFrom,omitzero"`
	LeftTo   netip.Addr `json:"leftTo,omitzero"`
	Out      string     `json:"out,omitempty"` // link by which it left; "": none
	// Chains are those that decided, in order.
	Chains  []string `json:"chains"`
	Dropped string   `json:"dropped,omitempty"` // by what; "": nothing that nftables knows
}

// Report is what was seen in one place.
type Report struct {
	Route string `json:"route,omitempty"`
	Link  string `json:"link,omitempty"` // by which the kernel sends the packet; "", with a route: it refuses it
	// Detour is the rule and the route that refuse the packet or, at its sender, take it elsewhere than to the overlay;
	// "": none do.
	Detour    string     `json:"detour,omitempty"`
	Sightings []Sighting `json:"sightings,omitempty"`
	Errors    []string   `json:"errors,omitempty"` // of what could not be asked or sent
}
