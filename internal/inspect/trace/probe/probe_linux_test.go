package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops/nft"
)

// questionVariable is the environment variable with a question, which the test program answers in its namespace.
const questionVariable = "LIQONET_TEST_QUESTION"

func TestMain(m *testing.M) {
	if text := os.Getenv(questionVariable); text != "" {
		var q Question
		err := json.Unmarshal([]byte(text), &q)
		if err == nil {
			err = q.Run(context.Background(), os.Stdin, os.Stdout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child is a probe that runs in a namespace.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func startProbe(t *testing.T, ns netns.Namespace, q Question) *child {
	t.Helper()
	text, err := json.Marshal(q)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	c := &child{t: t, cmd: ns.Command(t.Context(), self)}
	c.cmd.Env = append(os.Environ(), questionVariable+"="+string(text))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, c.cmd.Start())
	c.out = bufio.NewReader(out)
	if line, err := c.out.ReadString('\n'); err != nil || strings.TrimSpace(line) != Ready {
		t.Fatalf("%q, %v", line, err)
	}
	return c
}

func (c *child) send(command string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, command); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) stop() (r Report) {
	c.t.Helper()
	c.send(Stop)
	require.NoError(c.t, json.NewDecoder(c.out).Decode(&r))
	require.NoError(c.t, c.cmd.Wait())
	return r
}

// TestProbe traces packets of a pod from its node to a host behind a router, and their answers.
func TestProbe(t *testing.T) {
	node, router, host := netns.New(t), netns.New(t), netns.New(t)
	for _, ns := range []netns.Namespace{node, router} {
		ns.Run("sysctl", "-qw", "net.ipv4.ip_forward=1")
	}
	node.IP("link add pod type veth peer name eth0")
	node.IP("link add wan type veth peer name back netns " + router.Path())
	router.IP("link add lan type veth peer name eth0 netns " + host.Path())
	for ns, all := range map[netns.Namespace][]string{
		node:   {"link set pod up", "link set eth0 up", "link set wan up", "addr add 172.31.0.1/24 dev wan", "route add 10.1.0.7 dev pod", "route add 10.2.0.0/16 via 172.31.0.2"},
		router: {"link set back up", "link set lan up", "addr add 172.31.0.2/24 dev back", "addr add 10.2.0.1/24 dev lan", "route add 10.1.0.0/16 via 172.31.0.1"},
		host:   {"link set eth0 up", "addr add 10.2.0.5/24 dev eth0", "route add default via 10.2.0.1"},
	} {
		for _, line := range all {
			ns.IP(line)
		}
	}
	for _, protocol := range []string{"tcp", "udp"} {
		t.Run(protocol, func(t *testing.T) {
			from, to := netip.MustParseAddrPort("10.1.0.7:41000"), netip.MustParseAddrPort("10.2.0.5:80")
			flows := []Flow{{protocol, from, to}, {protocol, to, from}}
			trace := func() (sender, between Report) {
				t.Helper()
				s := startProbe(t, node.For(t), Question{Flows: flows, Lookup: &Lookup{From: from.Addr(), To: to.Addr(), Pod: true}, Send: true})
				b := startProbe(t, router.For(t), Question{Flows: flows, Lookup: &Lookup{From: from.Addr(), To: to.Addr(), Link: "back"}})
				s.send(Send)
				await(t, host.For(t))
				return s.stop(), b.stop()
			}
			host.Run("nft", "add table ip count; add chain ip count in { type filter hook input priority 0; }; add rule ip count in "+protocol+" dport 80 counter")
			sender, between := trace()
			if !strings.HasPrefix(sender.Route, "route 10.2.0.0/16 table 254 via 172.31.0.2 dev wan") || sender.Link != "wan" || len(sender.Errors) > 0 {
				t.Errorf("sender: %+v", sender)
			}
			if !strings.HasPrefix(between.Route, "route 10.2.0.0/24 table 254 dev lan") || between.Link != "lan" || len(between.Errors) > 0 {
				t.Errorf("between: %+v", between)
			}
			left := func(r Report, in, out string) bool {
				return slices.ContainsFunc(r.Sightings, func(s Sighting) bool {
					return s.In == in && s.Out == out && s.LeftFrom == s.From && s.LeftTo == to.Addr() && s.From == from.Addr() && s.Dropped == ""
				})
			}
			if !left(sender, "", "wan") || !left(between, "back", "lan") {
				t.Errorf("seen at the sender: %+v\nbetween: %+v", sender.Sightings, between.Sightings)
			}
			if protocol == "tcp" && !slices.ContainsFunc(between.Sightings, func(s Sighting) bool { return s.From == to.Addr() && s.Out == "back" }) {
				t.Errorf("no answer: %+v", between.Sightings)
			}

			host.Run("nft", "delete table ip count")
			router.Run("nft", "add table inet fault; add chain inet fault strict { type filter hook forward priority 5; }; add chain inet fault inner; add rule inet fault strict ip daddr 10.2.0.5 jump inner; add rule inet fault inner counter drop")
			defer router.Run("nft", "delete table inet fault")
			s := startProbe(t, node.For(t), Question{Flows: flows, Send: true})
			b := startProbe(t, router.For(t), Question{Flows: flows})
			s.send(Send)
			await(t, router.For(t))
			s.stop()
			between = b.stop()
			if len(between.Sightings) == 0 || !strings.Contains(between.Sightings[0].Dropped, "of chain inner of table inet fault") || between.Sightings[0].Out != "" {
				t.Errorf("dropped: %+v", between)
			}
		})
	}
	for _, ns := range []netns.Namespace{node, router} {
		if tables := ns.Run("nft", "list", "tables"); tables != "" {
			t.Errorf("left: %s", tables)
		}
	}
}

// await waits until a namespace's rules have counted a packet.
func await(t *testing.T, ns netns.Namespace) {
	t.Helper()
	wait.Succeeds(t, time.Minute, func() error {
		if text := ns.Run("nft", "list", "ruleset"); !strings.Contains(text, "counter packets") || strings.Contains(text, "counter packets 0 ") {
			return fmt.Errorf("no packet was counted:\n%s", text)
		}
		return nil
	})
}

// TestKilled checks that a killed probe leaves no state.
func TestKilled(t *testing.T) {
	ns := netns.New(t)
	flow := Flow{"tcp", netip.MustParseAddrPort("10.1.0.7:1"), netip.MustParseAddrPort("10.2.0.5:2")}
	c := startProbe(t, ns, Question{Flows: []Flow{flow}})
	if text := ns.Run("nft", "list", "ruleset"); !strings.Contains(text, "meta nftrace set 1") || !strings.Contains(text, "flags owner") {
		t.Errorf("while it runs:\n%s", text)
	}
	require.NoError(t, c.cmd.Process.Kill())
	_ = c.cmd.Wait() // it was killed
	if text := ns.Run("nft", "list", "ruleset"); text != "" {
		t.Errorf("left:\n%s", text)
	}
}

// TestOthersAreNotSeen checks that a probe ignores packets that another program traces at the same time.
func TestOthersAreNotSeen(t *testing.T) {
	from, to := netip.MustParseAddrPort("10.1.0.7:41000"), netip.MustParseAddrPort("10.2.0.5:80")
	w := newWatcher(Question{Flows: []Flow{{"tcp", from, to}, {"tcp", to, from}}})
	own, other := "ip "+w.table, netip.MustParseAddr("10.1.0.8")
	for _, s := range []nft.Step{
		{Packet: 1, Table: own, Chain: "prerouting", From: from.Addr(), To: to.Addr()},
		{Packet: 2, Table: own, Chain: "prerouting", From: other, To: to.Addr()},
		{Packet: 2, Table: "ip filter", Chain: "forward", Verdict: nft.VerdictDrop},
		{Packet: 2, Table: own, Chain: "postrouting", From: other, To: to.Addr()},
	} {
		w.observe(s)
	}
	if all := w.report.Sightings; len(all) != 1 || all[0].From != from.Addr() || all[0].Dropped != "" || all[0].LeftTo.IsValid() {
		t.Errorf("seen: %+v", all)
	}
	for i := range uint32(2 * maxPackets) {
		w.observe(nft.Step{Packet: 3 + i, Table: own, Chain: "output", From: from.Addr(), To: to.Addr()})
	}
	if len(w.report.Sightings) > maxSightings || len(w.packet) > maxPackets {
		t.Errorf("%d packets seen, %d remembered", len(w.report.Sightings), len(w.packet))
	}
}
