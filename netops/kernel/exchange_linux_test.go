package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// servicePort is the TCP and UDP port at which pods answer.
const servicePort = 7000

const (
	// answerWait is how long a question may take on a busy machine.
	answerWait = time.Minute
	// silence is after how long no answer counts as none, if besides this machine has had the time for turns exchanges,
	// one after another: a busy one needs as much longer as an answer would.
	silence = 300 * time.Millisecond
	turns   = 20
)

// serve answers every UDP packet, and each chunk of a TCP connection, at servicePort of an address with a name and the
// source seen.
func serve(ns namespace, on netip.Addr, name string) {
	ns.t.Helper()
	answer := func(_ []byte, from netip.AddrPort) []byte { return fmt.Appendf(nil, "%s sees %s", name, from.Addr()) }
	ns.ServeTCP(at(on).String(), func(c net.Conn) {
		for buf := make([]byte, 64<<10); ; {
			if _, err := c.Read(buf); err != nil {
				return
			}
			if _, err := c.Write(answer(nil, netip.MustParseAddrPort(c.RemoteAddr().String()))); err != nil {
				return
			}
		}
	})
	go netns.Answer(ns.ListenUDP(at(on).String()), answer)
}

// question sends something over a connection and returns the answer.
func question(c net.Conn, what string, wait time.Duration) (string, error) {
	if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, what); err != nil {
		return "", err
	}
	buf := make([]byte, 200)
	n, err := c.Read(buf)
	return string(buf[:n]), err
}

// ask sends one question from a namespace and returns the answer. As a busy machine may lose a datagram, it is sent
// three times where none comes.
func ask(t *testing.T, from namespace, network string, to netip.AddrPort) (answer string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), answerWait)
	defer cancel()
	c, err := from.Dial(ctx, network, to)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if network != "udp4" {
		return question(c, "?", answerWait)
	}
	for range 3 {
		if answer, err = question(c, "?", answerWait/3); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return answer, err
}

// expect asks by TCP and UDP: who answers, and which source the server sees.
func expect(t *testing.T, from namespace, to netip.AddrPort, server string, source netip.Addr) {
	t.Helper()
	want := fmt.Sprintf("%s sees %s", server, source)
	for _, network := range []string{"tcp4", "udp4"} {
		if got, err := ask(t, from, network, to); err != nil || got != want {
			t.Errorf("%s to %s: %q (%v), want %q", network, to, got, err, want)
		}
	}
}

// silent sends a datagram and expects no answer; an ICMP error of a router is none.
func silent(t *testing.T, from namespace, to netip.AddrPort) {
	t.Helper()
	c, err := from.Dial(t.Context(), "udp4", to)
	if err != nil {
		return // no route
	}
	defer func() { _ = c.Close() }()
	if got, answered := answerOf(t, c, from); answered {
		t.Errorf("udp to %s: %q, want silence", to, got)
	}
}

// dropped sends datagrams, of which a busy machine can lose some, and expects that rules drop one: their counter
// increases, and there is no answer.
func dropped(t *testing.T, from namespace, to netip.AddrPort, counter func() int) {
	t.Helper()
	c, err := from.Dial(t.Context(), "udp4", to)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	before := counter()
	wait.Until(t, fmt.Sprintf("a drop of what is for %s", to), answerWait, func() bool {
		_, _ = io.WriteString(c, "?") // an error is the answer to the one before, see below
		return counter() > before
	})
	if got, answered := lateAnswer(t, c, from); answered {
		t.Errorf("udp to %s: %q, want silence", to, got)
	}
}

// answerOf asks over a connection that should get no answer, and returns the answer where there is one.
func answerOf(t *testing.T, c net.Conn, ns namespace) (got string, answered bool) {
	t.Helper()
	if got, err := question(c, "?", silence); err == nil {
		return got, true
	}
	return lateAnswer(t, c, ns)
}

// lateAnswer returns what is there when two sockets of a namespace have taken turns.
func lateAnswer(t *testing.T, c net.Conn, ns namespace) (got string, answered bool) {
	t.Helper()
	takeTurns(t, ns)
	// A read before its deadline tries first, and then waits: what has come is seen.
	if err := c.SetReadDeadline(time.Now().Add(silence / 10)); err != nil {
		return "", false // closed by the other end
	}
	buf := make([]byte, 200)
	n, err := c.Read(buf)
	return string(buf[:n]), err == nil
}

// takeTurns has two sockets of a namespace answer each other.
func takeTurns(t *testing.T, ns namespace) {
	t.Helper()
	near, far := ns.For(t).ListenUDP("127.0.0.1:0"), ns.For(t).ListenUDP("127.0.0.1:0")
	defer func() { _, _ = near.Close(), far.Close() }()
	go netns.Answer(far, netns.Echo)
	for range turns {
		require.NoError(t, near.SetDeadline(time.Now().Add(answerWait)))
		_, err := near.WriteTo([]byte("?"), far.LocalAddr())
		require.NoError(t, err)
		_, _, err = near.ReadFrom(make([]byte, 64))
		require.NoError(t, err)
	}
}

// watch receives a copy of every UDP packet that comes to a namespace, whatever port it is for.
func watch(t *testing.T, ns namespace) net.PacketConn {
	t.Helper()
	return watchProtocol(t, ns, "udp")
}

// watchProtocol receives a copy of every packet of a protocol.
func watchProtocol(t *testing.T, ns namespace, protocol string) net.PacketConn {
	t.Helper()
	return ns.For(t).ListenPacket("ip4:"+protocol, "0.0.0.0")
}

func at(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, servicePort) }

// drops is how many packets the rules of one of our chains have dropped. Names of chains for IPv6 begin with ipv6.
func (ns namespace) drops(chain string) int {
	ns.t.Helper()
	if strings.HasPrefix(chain, "ipv6-") {
		return ns.countedIn("ip6", netops.Table, chain)
	}
	return ns.counted(netops.Table, chain)
}

// expectDrop waits until one of our chains has dropped the packet that send sends.
func expectDrop(t *testing.T, at namespace, chain string, send func()) {
	t.Helper()
	before := at.drops(chain)
	send()
	wait.Until(t, "a drop in chain "+chain, answerWait, func() bool { return at.drops(chain) > before })
}

// counted is how many packets the rules of a chain have counted.
func (ns namespace) counted(table, chain string) int {
	ns.t.Helper()
	return ns.countedIn("ip", table, chain)
}

func (ns namespace) countedIn(family, table, chain string) (packets int) {
	ns.t.Helper()
	for line := range strings.Lines(ns.Run("nft", "list", "chain", family, table, chain)) {
		if _, counted, ok := strings.Cut(line, "counter packets "); ok {
			var n int
			_, err := fmt.Sscan(counted, &n)
			require.NoError(ns.t, err)
			packets += n
		}
	}
	return packets
}
