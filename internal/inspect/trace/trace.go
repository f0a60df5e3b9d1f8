// Package trace follows the packets of a connection between two clusters, hop by hop, there and back. It computes the
// path from the records and from what nodes and gateways report, with the state that package kernels gives the kernels
// of these hops. It changes nothing, unless Live is set: then package probe sends a packet, and asks the kernels of the
// hops.
package trace

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inspect/trace/probe"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/ipam/translate"
)

// Protocol is that of the packets.
type Protocol string

// The protocols.
const (
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	ICMP Protocol = "icmp" // echo requests
)

// Options are the options of Run.
type Options struct {
	Local, Remote *cluster.Cluster
	From          string // pod ("NAMESPACE/NAME"), node or address of the local cluster
	// Pod or node of the remote cluster, or an address or Service ("svc/NAMESPACE/NAME") of the local one.
	To       string
	Protocol Protocol
	Port     uint16 // of the receiver; 0: not known
	Live     bool   // also send a packet, and ask the kernels
	Timeout  time.Duration
	// Exec runs a command in a pod of liqonet; nil: the API server has it run.
	Exec func(ctx context.Context, c *cluster.Cluster, pod string, command ...string) (io.ReadWriteCloser, error)
}

// Flow is what the packets of a trace are.
type Flow struct {
	Protocol Protocol `json:"protocol"`
	Port     uint16   `json:"port,omitempty"`
}

// End is a sender or a receiver.
type End struct {
	Cluster string         `json:"cluster,omitempty"`
	Kind    translate.Kind `json:"kind,omitempty"` // "": nothing that the other cluster can reach
	Name    string         `json:"name,omitempty"` // of a pod with its namespace, or of a node; "": not known
	Node    string         `json:"node,omitempty"` // on which it is; "": none
	Address netip.Addr     `json:"address"`        // in its cluster; of a node, in the overlay
	Seen    netip.Addr     `json:"seen,omitzero"`  // in the other cluster
	Service string         `json:"service,omitempty"`
	// Unreachable is why no packet gets there; "": no reason is known.
	Unreachable string `json:"unreachable,omitempty"`
	// Notes are what could not be found out, and why.
	Notes []string `json:"notes,omitempty"`

	pod policed
}

// Addresses are source and destination of a packet.
type Addresses struct {
	Source      netip.Addr `json:"source"`
	Destination netip.Addr `json:"destination"`
}

// Kind is what a hop is.
type Kind string

// The kinds.
const (
	Node    Kind = "node"
	Gateway Kind = "gateway"
)

// Member is a gateway or a tunnel by which packets may go.
type Member struct {
	Name string `json:"name"`
	// Used: it carries packets now. Those that are used share them by flow.
	Used bool   `json:"used"`
	Why  string `json:"why,omitempty"` // it is not used
}

// Hop is a place that packets pass, and what becomes of them there.
type Hop struct {
	Cluster string    `json:"cluster"`
	Kind    Kind      `json:"kind"`
	Name    string    `json:"name"` // of the node, or of the gateway's pod
	Node    string    `json:"node"` // on which it is
	Packet  Addresses `json:"packet"`
	// Translated is the packet after translation; nil: it stays as it is.
	Translated *Addresses `json:"translated,omitempty"`
	Rule       string     `json:"rule,omitempty"`
	Route      string     `json:"route,omitempty"`
	Members    []Member   `json:"members,omitempty"` // of the route's nexthop group; the packet takes a used one
	Out        string     `json:"out,omitempty"`     // link and encapsulation
	Outer      *Addresses `json:"outer,omitempty"`   // of the encapsulated packet; nil: not known
	Endpoint   string     `json:"endpoint,omitempty"`
	State      string     `json:"state,omitempty"`   // of the next part of the path, with the reason
	MTU        int        `json:"mtu,omitempty"`     // bytes, of packets that pass from here on
	PathMTU    int        `json:"pathMTU,omitempty"` // bytes, measured, of the encapsulated packet
	Notes      []string   `json:"notes,omitempty"`
	// Dropped is why the packet ends here; "": it goes on.
	Dropped string `json:"dropped,omitempty"`
}

// Way is the way of packets in one direction.
type Way []Hop

// Dropped is why packets end on the way; "": nothing is known that stops them.
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
	// Crosses: nothing in records and reports stops packets there or answers back, and the packet of Live crossed.
	Crosses bool  `json:"crosses"`
	There   Way   `json:"there"`
	Back    Way   `json:"back,omitempty"` // none where packets do not get there
	Live    *Live `json:"live,omitempty"`
}

// Live is what was seen of a packet that was sent, and of its answer.
type Live struct {
	Packet probe.Flow `json:"packet"` // as it was sent, by the sender's node
	// Arrived: it got to the receiver, or left the last gateway for an exposed host; Answered: its answer came back;
	// nil: unknown, as the place that would have seen it could not be asked. Unknown has the reason.
	Arrived  *bool  `json:"arrived,omitempty"`
	Answered *bool  `json:"answered,omitempty"`
	Unknown  string `json:"unknown,omitempty"`
	// Last is where it was seen last if it did not arrive, and what dropped it there; else of its answer.
	Last   string  `json:"last,omitempty"`
	Places []Place `json:"places"` // in the order of the path
}

// crosses reports whether packets of the connection cross. A datagram needs no answer.
func (l *Live) crosses() bool {
	return yes(l.Answered) || yes(l.Arrived) && l.Last == "" && l.Packet.Protocol == string(UDP)
}

func yes(known *bool) bool { return known != nil && *known }

// Place is where the kernel was asked.
type Place struct {
	Cluster string `json:"cluster"`
	Kind    Kind   `json:"kind"`
	Name    string `json:"name"`
	Pod     string `json:"pod"` // in which it was asked
	// Route is that of the kernel for the packet; Out, the link by which it leads.
	Route string `json:"route,omitempty"`
	Out   string `json:"out,omitempty"`
	// Detour is the rule and the route that refuse the packet or, at its sender, take it elsewhere than to the overlay;
	// "": none do.
	Detour string `json:"detour,omitempty"`
	// There and Back are the packets that were seen, and answers.
	There  []probe.Sighting `json:"there,omitempty"`
	Back   []probe.Sighting `json:"back,omitempty"`
	Errors []string         `json:"errors,omitempty"`
}

// Run traces the path. That packets do not cross is no error.
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
		o.Exec = func(ctx context.Context, c *cluster.Cluster, pod string, command ...string) (io.ReadWriteCloser, error) {
			return c.Exec(ctx, pod, command...)
		}
	}
	r.Live, err = o.live(ctx, local, remote, r)
	r.Crosses = r.Crosses && err == nil && r.Live.crosses()
	return r, err
}
