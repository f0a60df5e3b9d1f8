package pathtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops"
)

// capture inspects every frame on every link of a namespace for the marks in the senders' packets.
type capture struct {
	t        *testing.T
	fd       int
	done     chan struct{}
	clusters []*testCluster
	cards    map[[6]byte]*testCluster // clusters by the hardware address of a node
	cleaned  map[netip.Addr]bool      // nodes without liqonet state

	mu    sync.Mutex
	clear map[string][]sighting // by mark; without packets between nodes of one cluster
	// tunnel counts the tunnel's packets between clusters.
	tunnel int
}

// sighting is a marked packet on the underlay.
type sighting struct {
	source, target netip.Addr
	protocol       byte
	state          string // liqonet's state on the sending node when a packet of markLeaving was captured
}

func (s sighting) String() string {
	return fmt.Sprintf("from %s to %s, protocol %d, with %q standing", s.source, s.target, s.protocol, s.state)
}

// Of a frame.
const (
	ethernetHeader = 14
	ipHeader       = 20
	udpProtocol    = 17
	captureBuffer  = 128 << 20 // bytes: enough while this process waits for a core
	captureTick    = 100 * time.Millisecond
)

// startCapture captures until the test ends.
func startCapture(t *testing.T, ns netns.Namespace, clusters ...*testCluster) *capture {
	t.Helper()
	c := &capture{
		t: t, done: make(chan struct{}), clear: map[string][]sighting{}, clusters: clusters,
		cards: map[[6]byte]*testCluster{}, cleaned: map[netip.Addr]bool{},
	}
	for _, cluster := range clusters {
		for _, n := range cluster.Nodes {
			n.Inside(func() error {
				card, err := net.InterfaceByName("eth0")
				if err == nil {
					c.cards[[6]byte(card.HardwareAddr)] = cluster
				}
				return err
			})
		}
	}
	ns.Inside(func() (err error) {
		const all = 0x0300 // ETH_P_ALL in network byte order
		if c.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, all); err != nil {
			return err
		}
		wait := unix.NsecToTimeval(captureTick.Nanoseconds())
		return errors.Join(
			unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer),
			unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait))
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.run()
	}()
	t.Cleanup(func() {
		close(c.done)
		<-ended
		_ = unix.Close(c.fd)
	})
	return c
}

func (c *capture) run() {
	for buf := make([]byte, 65536); ; {
		select {
		case <-c.done:
			return
		default:
		}
		if n, _, err := unix.Recvfrom(c.fd, buf, 0); err == nil {
			c.inspect(buf[:n])
		}
	}
}

// inspect checks one frame. Inside a cluster the overlay is unencrypted, like the CNI's own packets.
func (c *capture) inspect(frame []byte) {
	if len(frame) < ethernetHeader {
		return
	}
	mark := markIn(frame)
	if to, from := c.cards[[6]byte(frame)], c.cards[[6]byte(frame[6:])]; mark != "" && to != nil && to == from {
		return
	}
	var s sighting
	if binary.BigEndian.Uint16(frame[12:]) == 0x0800 && len(frame) >= ethernetHeader+ipHeader {
		packet := frame[ethernetHeader:]
		s = sighting{
			source: netip.AddrFrom4([4]byte(packet[12:])), target: netip.AddrFrom4([4]byte(packet[16:])), protocol: packet[9],
		}
		plain := isTunnel(packet) && c.clusters[0].Kinds.WireGuard == records.Unencrypted
		if isTunnel(packet) && mark == "" || plain {
			c.mu.Lock()
			c.tunnel++
			c.mu.Unlock()
		}
		if plain { // without encryption, what is in the tunnel is not in the clear
			return
		}
	}
	if mark == "" {
		return
	}
	if mark == markLeaving && !c.cleaned[s.source] {
		s.state = c.stateAt(s.source)
		c.cleaned[s.source] = s.state == ""
	}
	c.record(mark, s)
}

// isTunnel reports whether a packet is for a port of WireGuard or WebSocket.
func isTunnel(packet []byte) bool {
	header := int(packet[0]&15) * 4
	if len(packet) < header+4 {
		return false
	}
	source, port := binary.BigEndian.Uint16(packet[header:]), binary.BigEndian.Uint16(packet[header+2:])
	switch packet[9] {
	case udpProtocol:
		return port == clusters.ServerPort || port == clusters.ListenPort || source == clusters.ServerPort
	case unix.IPPROTO_TCP:
		return port == clusters.WebSocketPort || port == netops.WebSocketPort
	}
	return false
}

// stateAt returns the liqonet state of a node that prevents unencrypted packets.
func (c *capture) stateAt(source netip.Addr) string {
	for _, cluster := range c.clusters {
		for i, n := range cluster.Nodes {
			if cluster.NodeAddress(i) != source {
				continue
			}
			var standing []string
			for what, command := range map[string][]string{
				"table": {"nft", "list", "table", "ip", "liqonet"}, "rule": {"ip", "rule", "show", "priority", "104"},
			} {
				if out, err := n.Command(c.t.Context(), command[0], command[1:]...).Output(); err == nil && len(out) > 0 {
					standing = append(standing, what)
				}
			}
			return strings.Join(standing, ", ")
		}
	}
	return ""
}

func (c *capture) record(mark string, s sighting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear[mark] = append(c.clear[mark], s)
}

// captured returns the unencrypted packets with a mark that were captured so far.
func (c *capture) captured(mark string) []sighting {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.clear[mark])
}

// complete fails the test if the kernel dropped packets of the capture.
func (c *capture) complete() {
	c.t.Helper()
	stats, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	require.NoError(c.t, err)
	if stats.Drops > 0 {
		c.t.Errorf("capture: %d of %d packets were missed", stats.Drops, stats.Packets)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t.Logf("captured %d packets, %d of them the tunnel's", stats.Packets, c.tunnel)
	if c.tunnel == 0 {
		c.t.Error("capture: no packet of the tunnel")
	}
}
