// Package path builds, in network namespaces, the ways between two clusters that a measurement compares: the tunnel
// alone, a baseline from pod to pod, a model of Liqo's path, and the path that liqonet's helpers make.
//
// Each cluster is one node with a pod and the gateway's pod; a wire joins the nodes. Both clusters have the same
// pod CIDR, so that addresses are translated in both directions.
package path

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
)

// Kinds is what a path is made of.
type Kinds struct {
	Overlay   records.OverlayKind
	WireGuard records.Implementation
}

// TestedKinds are those that the kernel under test supports, by variables of the environment.
func TestedKinds() (all []Kinds) {
	words := func(variable, otherwise string) []string {
		return strings.Fields(cmp.Or(os.Getenv(variable), otherwise))
	}
	for _, overlay := range words("LIQONET_TEST_OVERLAYS", string(records.VXLAN)) {
		for _, wireGuard := range words("LIQONET_TEST_WIREGUARD", string(records.Userspace)) {
			all = append(all, Kinds{records.OverlayKind(overlay), records.Implementation(wireGuard)})
		}
	}
	return all
}

// Bed holds what paths consist of: namespaces and processes, which end with it, or with this process.
type Bed struct {
	ctx     context.Context
	kinds   Kinds
	closers []func() error
	// started are the processes that were started since the last path was complete.
	started []int
	// nodes are those of all clusters: a link joins each two.
	nodes []netns.Handle
	// joined are the clusters with helpers.
	joined []*joined
	// Delay is that of the wires between nodes which are made from now on, in each direction.
	Delay time.Duration
}

// NewBed returns an empty bed. What is made in it ends with the context at the latest.
func NewBed(ctx context.Context, k Kinds) *Bed { return &Bed{ctx: ctx, kinds: k} }

// Close ends everything in the bed.
func (b *Bed) Close() error {
	var errs []error
	for _, c := range slices.Backward(b.closers) {
		errs = append(errs, c())
	}
	b.closers = nil
	return errors.Join(errs...)
}

// complete returns a path once a packet has come back on it, with all processes that were started for it.
func (b *Bed) complete(w load.Way) (load.Way, error) {
	w.Processes, b.started = b.started, nil
	// With a deadline, -c1 ends with the first answer.
	_, err := w.From.Run(b.ctx, "", "ping", "-q", "-c1", "-w20", "-i0.2", w.Address.String())
	return w, err
}

// onClose calls f when the bed ends, before what was made earlier goes.
func (b *Bed) onClose(f func() error) { b.closers = append(b.closers, f) }

// first calls f when all else of the bed has ended.
func (b *Bed) first(f func() error) { b.closers = slices.Insert(b.closers, 0, f) }

// namespace makes a namespace.
func (b *Bed) namespace() (netns.Handle, error) {
	ns, err := netns.Open()
	if err != nil {
		return ns, err
	}
	b.onClose(ns.Close)
	return ns, b.ip(ns, "link set lo up")
}

// ip runs ip(8) in a namespace with each line of arguments.
func (b *Bed) ip(ns netns.Handle, lines ...string) error {
	_, err := ns.Run(b.ctx, strings.Join(lines, "\n"), "ip", "-batch", "-")
	return err
}

// nft runs nft(8) in a namespace on a rule set.
func (b *Bed) nft(ns netns.Handle, lines ...string) error {
	_, err := ns.Run(b.ctx, strings.Join(lines, "\n")+"\n", "nft", "-f", "-")
	return err
}

// What both clusters have in common.
var (
	podCIDR        = netip.MustParsePrefix("10.244.0.0/16")
	nodePodCIDR    = netip.MustParsePrefix("10.244.1.0/24")
	bridgeAddress  = netip.MustParseAddr("10.244.1.1")
	podAddress     = netip.MustParseAddr("10.244.1.5")
	gatewayAddress = netip.MustParseAddr("10.244.1.9")
)

const (
	linkMTU     = 1500
	overlayMTU  = linkMTU - 50 // IPv4 20 + UDP 8 + overlay 8 + Ethernet 14
	pathMTU     = linkMTU - 80 // IPv6 40 + UDP 8 + WireGuard 32
	overlayPort = 6091
	overlayID   = 7
	tunnelBits  = 30    // of the range that both ends of a tunnel are in
	listenPort  = 51840 // of the gateways; a second tunnel has the next one
	nodePort    = 30000 // the same, at the server's node
)

// cluster is one of the two ends of a path.
type cluster struct {
	role               records.Role
	name               string
	number             byte         // 1: the server
	seen               netip.Prefix // its pod CIDR as the peer calls it
	tunnel             netip.Addr   // its end of the tunnel
	key                wgtypes.Key
	node, pod, gateway netns.Handle
	// others are its further gateways.
	others []gateway
}

// gateway is a pod and its key.
type gateway struct {
	key wgtypes.Key
	pod netns.Handle
}

// addGateway makes a further gateway.
func (b *Bed) addGateway(c *cluster) error {
	key, errKey := wgtypes.GeneratePrivateKey()
	number := len(c.others) + 1
	ns, err := b.attach(c, fmt.Sprintf("gateway%d", number), gatewayAt(number))
	c.others = append(c.others, gateway{key, ns})
	return errors.Join(errKey, err)
}

// gatewayAt is the address of a gateway's pod, by its number less one.
func gatewayAt(i int) netip.Addr {
	a := gatewayAddress.As4()
	a[3] += byte(i)
	return netip.AddrFrom4(a)
}

// gatewayOf is a gateway, by its number less one.
func (c *cluster) gatewayOf(i int) gateway {
	if i == 0 {
		return gateway{c.key, c.gateway}
	}
	return c.others[i-1]
}

// clusters makes the namespaces of both ends, as a simple CNI leaves them, and what a NodePort Service does.
func (b *Bed) clusters() (client, server *cluster, err error) {
	server = &cluster{role: records.Server, name: "b", number: 1, seen: netip.MustParsePrefix("10.12.0.0/16"),
		tunnel: netip.MustParseAddr("169.254.18.1")}
	client = &cluster{role: records.Client, name: "a", number: 2, seen: netip.MustParsePrefix("10.11.0.0/16"),
		tunnel: netip.MustParseAddr("169.254.18.2")}
	for _, c := range []*cluster{server, client} {
		if c.key, err = wgtypes.GeneratePrivateKey(); err != nil {
			return nil, nil, err
		}
		if err := b.build(c); err != nil {
			return nil, nil, fmt.Errorf("cluster %s: %w", c.name, err)
		}
	}
	b.nodes = append(b.nodes, client.node, server.node)
	return client, server, errors.Join(
		b.wire(client, server),
		b.address(client), b.address(server),
		b.nft(server.node, slices.Concat([]string{"table ip services {", "chain nodeports { type nat hook prerouting priority -100"}, services(), []string{"}", "}"})...))
}

// services are the rules of the server's NodePorts: one for each two gateways. A second tunnel of the first two has the
// port of the first gateways' next.
func services() (rules []string) {
	for i := range MaxGateways {
		for j := range MaxGateways {
			rules = append(rules, fmt.Sprintf("udp dport %d dnat to %s:%d", nodePort+tunnelNumber(i, j), gatewayAt(i), listenPort+j))
		}
	}
	return rules
}

// MaxGateways is how many gateways a cluster of a bed can have.
const MaxGateways = 2

// tunnelNumber is that of the tunnel between gateway i of the server and j of the client, from 0.
func tunnelNumber(i, j int) int { return i*records.MaxGateways + j }

func (c *cluster) nodeAddress() netip.Addr { return netip.AddrFrom4([4]byte{172, 31, 0, c.number}) }

// seenPod is the address of the cluster's pod as the peer calls it.
func (c *cluster) seenPod() netip.Addr {
	seen, pod := c.seen.Addr().As4(), podAddress.As4()
	return netip.AddrFrom4([4]byte{seen[0], seen[1], pod[2], pod[3]})
}

func (b *Bed) build(c *cluster) (err error) {
	if c.node, err = b.namespace(); err != nil {
		return err
	}
	if err := b.ip(c.node,
		"link add cni0 type bridge",
		"link set cni0 up",
		fmt.Sprintf("addr add %s/%d dev cni0", bridgeAddress, nodePodCIDR.Bits()),
	); err != nil {
		return err
	}
	if _, err := c.node.Run(b.ctx, "", "sysctl", "-qw", "net.ipv4.ip_forward=1"); err != nil {
		return err
	}
	if err := b.masquerade(c.node, earlyMasquerade); err != nil {
		return err
	}
	if c.pod, err = b.attach(c, "pod", podAddress); err != nil {
		return err
	}
	c.gateway, err = b.attach(c, "gateway", gatewayAddress)
	return err
}

// Priorities of the chains in which CNIs masquerade.
const (
	earlyMasquerade  = 90  // kindnet
	commonMasquerade = 100 // flannel, Calico and all others that use iptables
)

// masquerade is what a CNI does to what pods send to others than pods. It replaces what it did before.
func (b *Bed) masquerade(node netns.Handle, priority int) error {
	return b.nft(node, "table ip cni", "delete table ip cni", "table ip cni {",
		fmt.Sprintf("chain leaving { type nat hook postrouting priority %d", priority),
		fmt.Sprintf("ip saddr %s ip daddr != %s masquerade", podCIDR, podCIDR), "}", "}")
}

// attach makes a pod.
func (b *Bed) attach(c *cluster, port string, a netip.Addr) (netns.Handle, error) {
	pod, err := b.namespace()
	if err != nil {
		return pod, err
	}
	return pod, errors.Join(
		b.ip(c.node, fmt.Sprintf("link add %s type veth peer name eth0 netns %s", port, pod.Path()),
			fmt.Sprintf("link set %s master cni0 up", port)),
		b.ip(pod, "link set eth0 up", fmt.Sprintf("addr add %s/%d dev eth0", a, nodePodCIDR.Bits()),
			"route add default via "+bridgeAddress.String()))
}

// address gives a node its address on the wire.
func (b *Bed) address(c *cluster) error {
	return b.ip(c.node, "link set eth0 up", fmt.Sprintf("addr add %s/24 dev eth0", c.nodeAddress()),
		"route add default dev eth0")
}
