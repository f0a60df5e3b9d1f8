// Package trace traces the packets of a connection between two clusters, hop by hop, in both directions. It computes
// the path from the records and the reports of nodes and gateways, with the kernel states that package kernels computes
// for these hops. It changes nothing, unless Live is set: then package probe sends a packet and queries the kernels of
// the hops.
package trace

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/inspect/trace/probe"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/ipam/translate"
)

// Protocol is the protocol of the packets.
type Protocol string

// The protocols.
const (
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	ICMP Protocol = "icmp" // echo requests
)

// Options are the options of Run.
type Options struct {
	Local, Remote *kube.Cluster
	From          string // pod ("NAMESPACE/NAME"), node or address of the local cluster
	// To is a pod or node of the remote cluster, or an address or Service ("svc/NAMESPACE/NAME") of the local one.
	To       string
	Protocol Protocol
	Port     uint16 // of the receiver; 0: unknown
	Live     bool   // also send a packet and query the kernels
	Timeout  time.Duration
	// Exec runs a command in a pod of liqonet; nil: through the API server.
	Exec func(ctx context.Context, c *kube.Cluster, pod string, command ...string) (io.ReadWriteCloser, error)
}

// Flow is the kind of packets of a trace.
type Flow struct {
	Protocol Protocol `json:"protocol"`
	Port     uint16   `json:"port,omitempty"`
}

// End is a sender or a receiver.
type End struct {
	Cluster string         `json:"cluster,omitempty"`
	Kind    translate.Kind `json:"kind,omitempty"` // "": not reachable from the other cluster
	Name    string         `json:"name,omitempty"` // of a pod with its namespace, or of a node; "": unknown
	Node    string         `json:"node,omitempty"` // on which it runs; "": none
	Address netip.Addr     `json:"address"`        // in its cluster; of a node, in the overlay
	Seen    netip.Addr     `json:"seen,omitzero"`  // in the other cluster
	Service string         `json:"service,omitempty"`
	// Unreachable is the reason for which no packet reaches it; "": none is known.
	Unreachable string `json:"unreachable,omitempty"`
	// Notes list the data that could not be read, and why.
	Notes []string `json:"notes,omitempty"`

	pod podPolicies
}

// Addresses are the source and destination of a packet.
type Addresses struct {
	Source      netip.Addr `json:"source"`
	Destination netip.Addr `json:"destination"`
}

// Kind is the kind of a hop.
type Kind string

// The kinds.
const (
	Node    Kind = "node"
	Gateway Kind = "gateway"
)

// Member is a gateway or a tunnel that packets may take.
type Member struct {
	Name string `json:"name"`
	// Used is whether it carries packets now. The used members share packets by flow.
	Used bool   `json:"used"`
	Why  string `json:"why,omitempty"` // why it is not used
}

// Hop is a place on the path of packets, with its effect on them.
type Hop struct {
	Cluster string    `json:"cluster"`
	Kind    Kind      `json:"kind"`
	Name    string    `json:"name"` // of the node, or of the gateway's pod
	Node    string    `json:"node"` // on which it runs
	Packet  Addresses `json:"packet"`
	// Translated has the addresses after translation; nil: unchanged.
	Translated *Addresses `json:"translated,omitempty"`
	Rule       string     `json:"rule,omitempty"`
	Route      string     `json:"route,omitempty"`
	Members    []Member   `json:"members,omitempty"` // of the route's nexthop group; the packet takes a used one
	Out        string     `json:"out,omitempty"`     // link and encapsulation
	Outer      *Addresses `json:"outer,omitempty"`   // of the encapsulated packet; nil: unknown
	Endpoint   string     `json:"endpoint,omitempty"`
	State      string     `json:"state,omitempty"`   // of the next part of the path, with the reason
	MTU        int        `json:"mtu,omitempty"`     // bytes, of packets from here on
	PathMTU    int        `json:"pathMTU,omitempty"` // bytes, measured, of the encapsulated packet
	Notes      []string   `json:"notes,omitempty"`
	// Dropped is the reason for which the packet ends here; "": it continues.
	Dropped string `json:"dropped,omitempty"`
}

// Way is the path of packets in one direction.
type Way []Hop

// Dropped returns the reason for which packets do not pass; "" if none is known.
func (w Way) Dropped() string {
	if i := slices.IndexFunc(w, func(h Hop) bool { return h.Dropped != "" }); i >= 0 {
		return w[i].Dropped
	}
	return ""
}

// Result is a trace.
type Result struct {
	From End `json:"from"`
	To   End `json:"to"`
	Flow
	// Crosses is whether nothing in records and reports stops packets or answers, and the packet of Live crossed.
	Crosses bool  `json:"crosses"`
	There   Way   `json:"there"`
	Back    Way   `json:"back,omitempty"` // empty if packets do not arrive
	Live    *Live `json:"live,omitempty"`
}

// Live is the observation of a packet that was sent, and of its answer.
type Live struct {
	Packet probe.Flow `json:"packet"` // as sent by the sender's node
	// Arrived is whether it reached the receiver, or left the last gateway for an exposed host. Answered is whether its
	// answer came back. nil: unknown, as the place that would have observed it has no probe; Unknown has the reason.
	Arrived  *bool  `json:"arrived,omitempty"`
	Answered *bool  `json:"answered,omitempty"`
	Unknown  string `json:"unknown,omitempty"`
	// Last is where the packet, or else its answer, was last observed if it did not arrive, and what dropped it there.
	Last   string  `json:"last,omitempty"`
	Places []Place `json:"places"` // in the order of the path
}

// crosses reports whether packets of the connection cross. A datagram needs no answer.
func (l *Live) crosses() bool {
	return yes(l.Answered) || yes(l.Arrived) && l.Last == "" && l.Packet.Protocol == string(UDP)
}

func yes(known *bool) bool { return known != nil && *known }

// Place is a node or gateway with a probe.
type Place struct {
	Cluster string `json:"cluster"`
	Kind    Kind   `json:"kind"`
	Name    string `json:"name"`
	Pod     string `json:"pod"` // in which the probe runs
	// Route is the kernel's route for the packet; Out is its link.
	Route string `json:"route,omitempty"`
	Out   string `json:"out,omitempty"`
	// Detour is the rule and the route that reject the packet or, at its sender, lead it elsewhere than to the overlay;
	// "" if there are none.
	Detour string `json:"detour,omitempty"`
	// There and Back are the observed packets, and answers.
	There  []probe.Sighting `json:"there,omitempty"`
	Back   []probe.Sighting `json:"back,omitempty"`
	Errors []string         `json:"errors,omitempty"`
}

// Run traces the path. Packets that do not cross are no error.
func Run(ctx context.Context, o Options, _ progress.Reporter) (Result, error) {
	ctx, cancel := progress.Within(ctx, o.Timeout)
	defer cancel()
	local, remote, err := gather(ctx, o)
	if err != nil {
		return Result{}, err
	}
	r := Result{Flow: Flow{Protocol: o.Protocol, Port: o.Port}}
	if r.From, err = local.sender(ctx, o.From); err != nil {
		return r, err
	}
	if r.To, err = local.receiver(ctx, remote, o.To, &r.Flow); err != nil {
		return r, err
	}
	if r, err = compute(local, remote, r); err != nil || !o.Live {
		return r, err
	}
	if o.Exec == nil {
		o.Exec = func(ctx context.Context, c *kube.Cluster, pod string, command ...string) (io.ReadWriteCloser, error) {
			return c.Exec(ctx, pod, command...)
		}
	}
	r.Live, err = o.live(ctx, local, remote, r)
	r.Crosses = r.Crosses && err == nil && r.Live.crosses()
	return r, err
}
