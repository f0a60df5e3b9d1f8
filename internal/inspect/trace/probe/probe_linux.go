package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
	"liqonet.io/liqonet/netops/nft"
)

// tablePrefix is the prefix of a probe's nftables table. It differs from that of liqonet's own table, so helpers do not
// treat it as drift. The sender's port follows, so that several traces can run at once.
const tablePrefix = "lqn-trace-"

// Limits of a probe's memory.
const (
	maxSightings = 64
	maxPackets   = 1 << 16
)

// longest is the maximum run time of a probe, even if no command stops it.
const longest = time.Minute

var protocols = map[string]nft.Proto{"tcp": nft.TCP, "udp": nft.UDP, "icmp": nft.ICMP}

// Run runs the probe: it writes a line when it is ready, reads commands, and writes its report at the end.
func (q Question) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	w := newWatcher(q)
	if q.Lookup != nil {
		w.addError(w.lookUp(*q.Lookup, q.Flows[0], q.Send))
	}
	var flows []nft.Flow
	for _, f := range q.Flows {
		flows = append(flows, nft.Flow{
			Protocol: protocols[f.Protocol], From: f.From.Addr(), To: f.To.Addr(), FromPort: f.From.Port(), ToPort: f.To.Port(),
		})
	}
	traced, begun := make(chan error, 1), make(chan struct{})
	go func() { traced <- nft.Trace(ctx, w.table, flows, func() { close(begun) }, w.observe) }()
	select {
	case <-begun:
	case err := <-traced:
		traced <- nil
		w.addError(err)
	}
	fmt.Fprintln(out, Ready)
	go func() {
		defer cancel()
		for s := bufio.NewScanner(in); s.Scan() && s.Text() != Stop; {
			if s.Text() == Send && q.Send && (w.report.Route == "" || w.report.Link != "") { // not rejected
				w.addError(send(q.Flows[0]))
			}
		}
	}()
	<-ctx.Done()
	w.addError(<-traced)
	w.mu.Lock() // it may send still
	defer w.mu.Unlock()
	return json.NewEncoder(out).Encode(w.report)
}

// watcher collects a report.
type watcher struct {
	flows  []Flow
	table  string
	mu     sync.Mutex
	report Report
	packet map[uint32]int // index of a packet's sighting, by the kernel's packet ID; -1: none
}

func newWatcher(q Question) *watcher {
	return &watcher{flows: q.Flows, packet: make(map[uint32]int), table: fmt.Sprint(tablePrefix, q.Flows[0].From.Port())}
}

func (w *watcher) addError(err error) {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.report.Errors = append(w.report.Errors, err.Error())
	}
}

// observe adds a step to the sighting of its packet. The kernel assigns another ID to a packet when its headers change:
// a packet that did not start at the first chain of the probe has not left yet.
func (w *watcher) observe(s nft.Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := s.Table == "ip "+w.table
	if own && (s.Chain == "prerouting" || s.Chain == "output") && s.From.IsValid() && !w.begin(s) {
		return
	}
	i, known := w.packet[s.Packet]
	if !known {
		i = w.unfinished(linkName(s.IIf))
	}
	if i < 0 {
		return
	}
	w.packet[s.Packet] = i
	seen := &w.report.Sightings[i]
	if own {
		if (s.Chain == "input" || s.Chain == "postrouting") && s.From.IsValid() {
			seen.LeftFrom, seen.LeftTo, seen.Out = s.From, s.To, linkName(s.OIf)
		}
		return
	}
	if s.Verdict != "" {
		seen.addVerdict(s)
	}
}

// addVerdict adds the verdict of a chain.
func (seen *Sighting) addVerdict(s nft.Step) {
	if chain := s.Table + " " + s.Chain; !slices.Contains(seen.Chains, chain) {
		seen.Chains = append(seen.Chains, chain)
	}
	if s.Verdict != nft.VerdictAccept {
		by := "the policy"
		if s.Rule != 0 {
			by = fmt.Sprintf("rule %d", s.Rule)
		}
		seen.Dropped = fmt.Sprintf("%s by %s of chain %s of table %s", s.Verdict, by, s.Chain, s.Table)
	}
}

// begin begins the sighting of a packet. It reports whether the packet belongs to the flows: others appear if another
// program traces packets at the same time. The number of sightings is bounded, so a flood of matching packets, such as
// pings, does not fill the memory of the helper's pod.
func (w *watcher) begin(s nft.Step) bool {
	matches := slices.ContainsFunc(w.flows, func(f Flow) bool { return f.From.Addr() == s.From && f.To.Addr() == s.To })
	i := -1
	if matches && len(w.report.Sightings) < maxSightings {
		i = len(w.report.Sightings)
		w.report.Sightings = append(w.report.Sightings, Sighting{Time: time.Now(), From: s.From, To: s.To, In: linkName(s.IIf)})
	}
	if len(w.packet) < maxPackets {
		w.packet[s.Packet] = i
	}
	return i >= 0
}

// unfinished returns the latest sighting of a packet that came by a link and has neither left nor been dropped; -1 if
// there is none.
func (w *watcher) unfinished(in string) int {
	for i, seen := range slices.Backward(w.report.Sightings) {
		if !seen.LeftTo.IsValid() && seen.Dropped == "" && seen.In == in {
			return i
		}
	}
	return -1
}

// linkName returns the name of a link, or its number if the link no longer exists; "" for no link.
func linkName(index uint32) string {
	if index == 0 {
		return ""
	}
	link, err := net.InterfaceByIndex(int(index))
	if err != nil {
		return fmt.Sprint(index)
	}
	return link.Name
}

// lookUp queries the kernel's route for a packet; sends is whether this place sends it.
func (w *watcher) lookUp(l Lookup, f Flow, sends bool) (err error) {
	kernel, err := kernel.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kernel.Close()) }()
	p := netops.Packet{From: l.From, To: l.To, IIf: l.Link}
	if l.Pod {
		back, err := kernel.Decide(netops.Packet{To: l.From}, 0, 0, 0)
		if err != nil {
			return err
		}
		p.IIf = back.Link
	}
	d, err := kernel.Decide(p, uint8(protocols[f.Protocol]), f.From.Port(), f.To.Port())
	if err != nil {
		return err
	}
	w.report.Route, w.report.Link = d.Route.String(), d.Link
	if d.Link == "" || sends && !strings.HasPrefix(d.Link, netops.Prefix) {
		w.report.Detour = d.String()
	}
	return nil
}

// send sends a packet with the sender's address, which can be that of a pod of this node (IP_TRANSPARENT). It closes
// the socket immediately: otherwise the kernel would drop answers on their way to the pod as its own (ip_forward in
// net/ipv4/ip_forward.c).
func send(f Flow) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("send a packet from %s to %s: %w", f.From, f.To, err)
		}
	}()
	kind, protocol, data := unix.SOCK_DGRAM, 0, []byte("liqonet network trace\n")
	switch f.Protocol {
	case "tcp":
		kind = unix.SOCK_STREAM | unix.SOCK_NONBLOCK
	case "icmp": // echo request; the kernel fills in identifier and checksum
		protocol, data = unix.IPPROTO_ICMP, append([]byte{8, 0, 0, 0, 0, 0, 0, 1}, data...)
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, sockaddr(f.From)); err != nil {
		return err
	}
	if f.Protocol != "tcp" {
		return unix.Sendto(fd, data, 0, sockaddr(f.To))
	}
	if err := unix.Connect(fd, sockaddr(f.To)); !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	return nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}
