package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// A check is retried, as packets get lost. Each attempt has a longer timeout than the one before, for busy machines.
const (
	firstTimeout = time.Second
	lastTimeout  = 8 * time.Second
	totalTimeout = 15 * time.Second // of all attempts
)

// Bytes of packets and messages.
const (
	headers  = 28 // IPv4 20 + UDP 8
	small    = 256
	fragment = 4000
	large    = 100_000
)

// Inquiry is the input of a probe.
type Inquiry struct {
	Targets []Target
	MTU     int           // bytes, of the largest packet that crosses unfragmented
	Hold    time.Duration // how long a connection is kept open for the check Connection
}

// skipped is the error of a check that cannot be made on this node.
type skipped struct{ why string }

func (s skipped) Error() string { return s.why }

// wrongAnswer is the error of a check with an unexpected answer.
type wrongAnswer string

func (w wrongAnswer) Error() string { return string(w) }

// Ask makes all checks of all targets concurrently.
func (q Inquiry) Ask(ctx context.Context) []Result {
	results := make([]Result, len(q.Targets))
	var group sync.WaitGroup
	var mu sync.Mutex
	for i, target := range q.Targets {
		r := &results[i]
		*r = Result{Target: target.Name, Failed: map[Check]string{}, Skipped: map[Check]string{}}
		for _, check := range target.Checks {
			group.Go(func() {
				observed, err := q.check(ctx, target, check)
				mu.Lock()
				defer mu.Unlock()
				if observed.source.IsValid() && (check == TCP || !r.Source.IsValid()) {
					r.Source = observed.source
				}
				r.Gap = max(r.Gap, observed.gap)
				if s, ok := errors.AsType[skipped](err); ok {
					r.Skipped[check] = s.why
				} else if err != nil {
					r.Failed[check] = err.Error()
				}
			})
		}
	}
	group.Wait()
	return results
}

// observation is the result of a check besides its error.
type observation struct {
	source netip.Addr
	gap    time.Duration
}

func (q Inquiry) check(ctx context.Context, t Target, check Check) (observed observation, err error) {
	switch check {
	case TCP:
		observed.source, err = t.askTCP(ctx)
	case UDP:
		observed.source, err = t.askUDP(ctx, small, unix.IP_PMTUDISC_WANT)
	case Fragments:
		observed.source, err = t.askUDP(ctx, fragment, unix.IP_PMTUDISC_WANT)
	case FullSize:
		observed.source, err = t.askFullSize(ctx, q.MTU)
	case Oversize:
		err = t.askOversize(ctx, q.MTU)
	case Ping:
		err = t.ping(ctx)
	case Connection:
		observed.gap, err = t.hold(ctx, q.Hold)
	default:
		err = skipped{"not known to this version"}
	}
	return observed, err
}

// retry calls ask until it returns no error or a permanent error, or until the last attempt.
func retry(ctx context.Context, ask func(context.Context) error) (err error) {
	for wait := firstTimeout; wait <= lastTimeout; wait *= 2 {
		bounded, cancel := context.WithTimeout(ctx, wait)
		err = ask(bounded)
		if err == nil || permanent(err) {
			cancel()
			return err
		}
		<-bounded.Done() // after an immediate refusal too: a gateway may be moving
		cancel()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", totalTimeout)
	}
	return err
}

// permanent reports whether an error is a result rather than packet loss.
func permanent(err error) bool {
	_, skips := errors.AsType[skipped](err)
	_, answered := errors.AsType[wrongAnswer](err)
	return skips || answered || errors.Is(err, unix.EMSGSIZE)
}

// open connects to the target. Reads and writes end with the context.
func (t Target) open(ctx context.Context, network string, control func(string, string, syscall.RawConn) error) (net.Conn, error) {
	dialer := net.Dialer{Control: control}
	conn, err := dialer.DialContext(ctx, network, t.Address.String())
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline() // zero: none
	err = conn.SetDeadline(deadline)
	if network == "tcp4" && err == nil {
		_, err = io.WriteString(conn, t.Token)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// datagram returns a message of size bytes, which a server answers.
func (t Target) datagram(size int) []byte {
	return append([]byte(t.Token), pattern(size-len(t.Token))...)
}

// judge returns the source in the answer to a message, after it has checked the rest.
func (t Target) judge(reply, message []byte) (netip.Addr, error) {
	var a answer
	if err := json.Unmarshal(reply, &a); err != nil {
		return a.From, wrongAnswer("an answer that is not a server's: " + err.Error())
	}
	switch {
	case t.Node != "" && a.Node != t.Node:
		return a.From, wrongAnswer(fmt.Sprintf("node %s answered", a.Node))
	case a.Sum != sum(message):
		return a.From, wrongAnswer("what arrived is not what was sent")
	}
	return a.From, nil
}

// pattern returns a message in which a missing or moved part is detectable.
func pattern(size int) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = byte(i ^ i>>8)
	}
	return p
}

func (t Target) askTCP(ctx context.Context) (source netip.Addr, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		conn, err := t.open(ctx, "tcp4", nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		source, err = t.exchange(conn, pattern(large))
		return err
	})
	return source, err
}

func (t Target) exchange(conn net.Conn, message []byte) (netip.Addr, error) {
	if err := writeFrame(conn, message); err != nil {
		return netip.Addr{}, err
	}
	var reply bytes.Buffer
	if err := copyFrame(&reply, conn); err != nil {
		return netip.Addr{}, err
	}
	return t.judge(reply.Bytes(), message)
}

// askUDP sends datagrams in packets of size bytes, headers included, with a mode of path MTU discovery: see ip(7).
func (t Target) askUDP(ctx context.Context, size, discovery int) (source netip.Addr, err error) {
	message := t.datagram(size - headers)
	err = retry(ctx, func(ctx context.Context) error {
		reply, err := t.exchangeDatagram(ctx, message, discovery)
		if err == nil {
			source, err = t.judge(reply, message)
		}
		return err
	})
	return source, err
}

func (t Target) exchangeDatagram(ctx context.Context, message []byte, discovery int) ([]byte, error) {
	conn, err := t.open(ctx, "udp4", discover(discovery))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(message); err != nil {
		return nil, err
	}
	buf := make([]byte, 1<<16)
	n, err := conn.Read(buf)
	return buf[:n], err
}

// discover returns a net.Dialer's Control that sets the mode of path MTU discovery.
func discover(mode int) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, mode)
		})
		return errors.Join(err, failed)
	}
}

// askFullSize sends the largest packet that should cross: of the path MTU, or of the link's MTU if that is smaller.
func (t Target) askFullSize(ctx context.Context, mtu int) (netip.Addr, error) {
	mtu, err := t.fit(ctx, mtu)
	if err != nil {
		return netip.Addr{}, err
	}
	source, err := t.askUDP(ctx, mtu, unix.IP_PMTUDISC_DO)
	if err != nil {
		err = fmt.Errorf("packet of %d bytes: %w", mtu, err)
	}
	return source, err
}

// fit returns the minimum of a path MTU and the MTU of the link to the target.
func (t Target) fit(ctx context.Context, mtu int) (int, error) {
	conn, err := t.open(ctx, "udp4", nil)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return 0, err
	}
	links, err := net.Interfaces()
	if err != nil {
		return 0, err
	}
	for _, link := range links {
		addresses, err := link.Addrs()
		if err != nil {
			return 0, err
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == local.Addr() {
				return min(mtu, link.MTU), nil
			}
		}
	}
	return mtu, nil
}

// askOversize sends packets one byte larger than the path MTU until the kernel rejects them, because it knows the path
// MTU or because a hop reported it. Only then do senders learn the path MTU.
func (t Target) askOversize(ctx context.Context, mtu int) error {
	mtu, err := t.fit(ctx, mtu)
	if err != nil {
		return err
	}
	size := mtu + 1
	err = retry(ctx, func(ctx context.Context) error {
		_, err := t.exchangeDatagram(ctx, t.datagram(size-headers), unix.IP_PMTUDISC_DO)
		if err == nil {
			return wrongAnswer(fmt.Sprintf("a packet of %d bytes crossed", size))
		}
		return err
	})
	switch {
	case errors.Is(err, unix.EMSGSIZE):
		return nil
	case permanent(err):
		return err
	}
	return fmt.Errorf("packet of %d bytes: neither an answer nor an error", size)
}

// ping sends ICMP echo requests from an unprivileged socket. The node's net.ipv4.ping_group_range decides whether a
// process may open one.
func (t Target) ping(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) error {
		conn, err := icmp.ListenPacket("udp4", "0.0.0.0")
		if errors.Is(err, fs.ErrPermission) {
			return skipped{"not permitted: net.ipv4.ping_group_range"}
		}
		if err != nil {
			return err
		}
		defer conn.Close()
		deadline, _ := ctx.Deadline()
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
		request := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{Seq: 1, Data: pattern(small)}}
		data, err := request.Marshal(nil)
		if err != nil {
			return err
		}
		if _, err := conn.WriteTo(data, &net.UDPAddr{IP: t.Address.Addr().AsSlice()}); err != nil {
			return err
		}
		buf := make([]byte, 1<<16)
		n, _, err := conn.ReadFrom(buf)
		if err == nil && !bytes.HasSuffix(buf[:n], pattern(small)) {
			err = wrongAnswer("the answer is not what was sent")
		}
		return err
	})
}
