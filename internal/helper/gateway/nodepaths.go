//go:build linux

package gateway

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
)

// countedEvery is the interval at which a gateway counts its nodes: each of its echoes has their number.
const countedEvery = 50 * time.Millisecond

// nodePaths are the paths of this cluster's nodes, from the reports in their echoes to the gateway.
type nodePaths struct {
	ignored *prometheus.CounterVec
	own     string          // the node of this gateway: it is lost together with the gateway
	news    chan<- struct{} // triggers a report

	mu        sync.Mutex          // guards what follows
	gateway   records.GatewayID   // this gateway
	internal  netip.Prefix        // of this cluster
	nodes     []reportedNode      // of the view
	internals map[netip.Addr]bool // their internal addresses
	sources   map[netip.Addr]bool // their source addresses for this gateway, outside the overlay
	paths     map[netip.Addr]nodePath
	witnesses []netip.Addr // nodes that are to be witnesses
	turn      int          // index of the next address for the peer
	reached   uint32       // nodes, as of the last count
	counted   time.Time    // time of the last count
}

// nodePath is the content of a node's last echo.
type nodePath struct {
	membership.Sender
	proof         time.Time // zero: none
	rtt, proofRTT time.Duration
	path          echo.Path // path to this gateway, outside the overlay
	witness       bool      // it reports when this gateway does not answer
}

func newNodePaths(m *helper.Metrics, own string, news chan<- struct{}) *nodePaths {
	return &nodePaths{ignored: m.Ignored, own: own, news: news, paths: map[netip.Addr]nodePath{}}
}

// update removes the nodes that no longer exist.
func (n *nodePaths) update(v view) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gateway, n.internal, n.nodes = v.id, v.fabric.InternalCIDR(), v.nodes
	n.internals, n.sources = make(map[netip.Addr]bool, len(v.nodes)), make(map[netip.Addr]bool, len(v.nodes))
	for _, node := range v.nodes {
		n.internals[node.Internal], n.sources[node.OverlaySources[v.id]] = true, true
	}
	maps.DeleteFunc(n.paths, func(a netip.Addr, _ nodePath) bool { return !n.internals[a] })
}

// send reports whether a node sends to this gateway from an address, outside the overlay.
func (n *nodePaths) send(from netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sources[from]
}

// answer stores a node's report of its own path, and returns whether it is to be a witness.
func (n *nodePaths) answer(from netip.AddrPort, m echo.Message) echo.Content {
	r, internal := m.Content.Report, from.Addr()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.internals[internal] || r.Node != cidr.Offset(n.internal, internal) {
		return echo.Content{}
	}
	now := time.Now()
	path := nodePath{rtt: r.OverlayRTT, path: plausible(n.ignored, m.Content.Path), witness: m.Content.Witness}
	path.Sender = membership.Sender{Echo: now, Unused: m.Content.Unused, Deaf: m.Content.NoWay}
	if r.Verified {
		path.proof, path.proofRTT = now.Add(-r.VerifiedAge), r.VerifiedRTT
	}
	if before := n.paths[internal]; path.path != before.path || before.proof.IsZero() && r.Verified {
		wakeup.Notify(n.news)
	}
	n.paths[internal] = path
	if len(n.witnesses) < membership.MaxWitnesses {
		n.choose() // it may be a witness from its first echo on
	}
	return echo.Content{Witness: slices.Contains(n.witnesses, internal)}
}

// watched chooses the witnesses, and reports whether one on another node than the gateway's confirms that it is one.
func (n *nodePaths) watched() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	own := n.choose()
	return slices.ContainsFunc(n.witnesses, func(a netip.Addr) bool { return a != own && n.paths[a].witness })
}

// choose updates the witnesses, and returns the gateway's own node if that is alive; n.mu is held.
func (n *nodePaths) choose() (own netip.Addr) {
	var live []netip.Addr
	for _, node := range n.nodes {
		switch {
		case !n.alive(node.Internal):
		case node.Name == n.own:
			own = node.Internal
		default:
			live = append(live, node.Internal)
		}
	}
	n.witnesses = membership.Witnesses(n.witnesses, live, own)
	return own
}

// alive reports whether a node's echoes arrive; n.mu is held.
func (n *nodePaths) alive(a netip.Addr) bool { return n.paths[a].Live(time.Now()) }

// reach reports whether any node's echoes arrive, and are answered.
func (n *nodePaths) reach() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.nodes, func(node reportedNode) bool {
		return n.paths[node.Internal].Reached(membership.AnyNodeWithin, time.Now())
	})
}

// reaches returns how many nodes' echoes arrive, and are answered.
func (n *nodePaths) reaches() uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); now.Sub(n.counted) >= countedEvery {
		n.reached, n.counted = 0, now
		for _, p := range n.paths {
			if p.Reached(membership.ReachedWithin, now) {
				n.reached++
			}
		}
	}
	return n.reached
}

// name returns one live node of this cluster for the peer, a different one each time: of the first sentMost, so
// that each is sent again before it expires.
func (n *nodePaths) name() echo.Content {
	n.mu.Lock()
	defer n.mu.Unlock()
	var live []netip.Addr
	for _, node := range n.nodes {
		if len(live) < sentMost && n.alive(node.Internal) {
			live = append(live, node.Internal)
		}
	}
	if len(live) == 0 {
		return echo.Content{}
	}
	n.turn = (n.turn + 1) % len(live)
	return echo.Content{Node: cidr.Offset(n.internal, live[n.turn])}
}

// endpoint returns the address of one live node for a client, another one each turn, and reports whether it is that of
// the gateway's own node, which is always among them.
func (n *nodePaths) endpoint(turn int) (a netip.Addr, own bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var live []netip.Addr
	for _, node := range n.nodes {
		switch {
		case node.Name != n.own && len(live) >= sentMost || !node.Address.Is4() || !n.alive(node.Internal):
		case node.Name == n.own:
			live, own = slices.Insert(live, 0, node.Address), true
		default:
			live = append(live, node.Address)
		}
	}
	if len(live) == 0 {
		return netip.Addr{}, false
	}
	i := turn % min(len(live), sentMost)
	return live[i], own && i == 0
}

// have reports whether a node has an address.
func (n *nodePaths) have(a netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return a.IsValid() && slices.ContainsFunc(n.nodes, func(node reportedNode) bool { return node.Address == a })
}

// statuses returns the nodes' part of a report.
func (n *nodePaths) statuses() []records.NodeStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []records.NodeStatus
	for _, node := range n.nodes {
		p := n.paths[node.Internal]
		all = append(all, records.NodeStatus{
			Name: node.Name, LastEcho: publish.Stamp(p.Echo), LastProof: publish.Stamp(p.proof),
			RTT: records.Duration(p.rtt), ProofRTT: records.Duration(p.proofRTT),
			Path: pathRecord(p.path), Drift: node.Drift, Refused: node.Refused[n.gateway.Peering], Unused: p.Unused, Deaf: p.Deaf,
		})
	}
	return all
}

// plausible returns a received path if it is possible, else the zero value.
func plausible(ignored *prometheus.CounterVec, p echo.Path) echo.Path {
	if p.Size != 0 && p.Size < echo.LeastPacket {
		ignored.WithLabelValues("size of a path").Inc()
		return echo.Path{}
	}
	return p
}

func pathRecord(p echo.Path) records.PathSize { return records.PathSize{Asked: p.Asked, MTU: p.Size} }
