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

// A check is tried again: packets get lost. Each attempt waits longer than the one before, since machines are busy.
const (
	firstPatience = time.Second
	lastPatience  = 8 * time.Second
	patience      = 15 * time.Second // of all attempts
)

// Bytes of packets and messages.
const (
	headers  = 28 // IPv4 20 + UDP 8
	small    = 256
	fragment = 4000
	large    = 100_000
)

// Inquiry is what a probe is to ask.
type Inquiry struct {
	Targets []Target
	MTU     int           // bytes: of the largest packet that crosses whole
	Hold    time.Duration // how long a connection is kept open for the check Connection
}

// skipped says that a check cannot be made here.
type skipped struct{ why string }

func (s skipped) Error() string { return s.why }

// wrong says what is wrong with an answer.
type wrong string

func (w wrong) Error() string { return string(w) }

// Ask makes all checks of all targets at once.
func (q Inquiry) Ask(ctx context.Context) []Result {
	results := make([]Result, len(q.Targets))
	var group sync.WaitGroup
	var mu sync.Mutex
	for i, target := range q.Targets {
		r := &results[i]
		*r = Result{Target: target.Name, Failed: map[Check]string{}, Skipped: map[Check]string{}}
		for _, check := range target.Checks {
			group.Go(func() {
				saw, err := q.check(ctx, target, check)
				mu.Lock()
				defer mu.Unlock()
				if saw.source.IsValid() && (check == TCP || !r.Source.IsValid()) {
					r.Source = saw.source
				}
				r.Gap = max(r.Gap, saw.gap)
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

// sight is what a check saw beside its failure.
type sight struct {
	source netip.Addr
	gap    time.Duration
}

func (q Inquiry) check(ctx context.Context, t Target, check Check) (saw sight, err error) {
	switch check {
	case TCP:
		saw.source, err = t.askTCP(ctx)
	case UDP:
		saw.source, err = t.askUDP(ctx, small, unix.IP_PMTUDISC_WANT)
	case Fragments:
		saw.source, err = t.askUDP(ctx, fragment, unix.IP_PMTUDISC_WANT)
	case FullSize:
		saw.source, err = t.askFullSize(ctx, q.MTU)
	case Oversize:
		err = t.askOversize(ctx, q.MTU)
	case Ping:
		err = t.ping(ctx)
	case Connection:
		saw.gap, err = t.hold(ctx, q.Hold)
	default:
		err = skipped{"not known to this version"}
	}
	return saw, err
}

// persist tries until there is no error, an error that a repetition does not repair, or the last attempt.
func persist(ctx context.Context, ask func(context.Context) error) (err error) {
	for wait := firstPatience; wait <= lastPatience; wait *= 2 {
		bounded, cancel := context.WithTimeout(ctx, wait)
		err = ask(bounded)
		if err == nil || lasting(err) {
			cancel()
			return err
		}
		<-bounded.Done() // refused at once: a gateway may be on its way
		cancel()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", patience)
	}
	return err
}

// lasting reports whether an error is the answer, and no loss on the way.
func lasting(err error) bool {
	_, skips := errors.AsType[skipped](err)
	_, answered := errors.AsType[wrong](err)
	return skips || answered || errors.Is(err, unix.EMSGSIZE)
}

// open dials and has reads and writes end with the context.
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

// datagram is a message of that many bytes which a server answers.
func (t Target) datagram(size int) []byte {
	return append([]byte(t.Token), pattern(size-len(t.Token))...)
}

// judge returns the source in an answer to a message, after checking the rest.
func (t Target) judge(reply, message []byte) (netip.Addr, error) {
	var a answer
	if err := json.Unmarshal(reply, &a); err != nil {
		return a.From, wrong("an answer that is not a server's: " + err.Error())
	}
	switch {
	case t.Node != "" && a.Node != t.Node:
		return a.From, wrong(fmt.Sprintf("node %s answered", a.Node))
	case a.Sum != sum(message):
		return a.From, wrong("what arrived is not what was sent")
	}
	return a.From, nil
}

// pattern is a message in which a missing or moved part shows.
func pattern(size int) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = byte(i ^ i>>8)
	}
	return p
}

func (t Target) askTCP(ctx context.Context) (source netip.Addr, err error) {
	err = persist(ctx, func(ctx context.Context) error {
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

// askUDP sends datagrams in packets of that size, headers included, with a mode of path MTU discovery: see ip(7).
func (t Target) askUDP(ctx context.Context, size, discovery int) (source netip.Addr, err error) {
	message := t.datagram(size - headers)
	err = persist(ctx, func(ctx context.Context) error {
		conn, err := t.open(ctx, "udp4", discover(discovery))
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.Write(message); err != nil {
			return err
		}
		buf := make([]byte, 1<<16)
		n, err := conn.Read(buf)
		if err != nil {
			return err
		}
		source, err = t.judge(buf[:n], message)
		return err
	})
	return source, err
}

// discover is a net.Dialer's Control that sets the mode of path MTU discovery.
func discover(mode int) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, mode)
		})
		return errors.Join(err, failed)
	}
}

// askFullSize sends the largest packet that should cross: of the path MTU, or of the link's MTU where that is smaller.
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

// fit returns the smaller one of a path MTU and the MTU of the link that leads to the target.
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

// askOversize sends packets of one byte more than cross, until the kernel refuses them: by its own knowledge, or
// because a hop said so. Only then do senders learn the path MTU.
func (t Target) askOversize(ctx context.Context, mtu int) error {
	mtu, err := t.fit(ctx, mtu)
	if err != nil {
		return err
	}
	size := mtu + 1
	err = persist(ctx, func(ctx context.Context) error {
		conn, err := t.open(ctx, "udp4", discover(unix.IP_PMTUDISC_DO))
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.Write(t.datagram(size - headers)); err != nil {
			return err
		}
		buf := make([]byte, 1<<16)
		if _, err = conn.Read(buf); err == nil {
			return wrong(fmt.Sprintf("a packet of %d bytes crossed", size))
		}
		return err
	})
	switch {
	case errors.Is(err, unix.EMSGSIZE):
		return nil
	case lasting(err):
		return err
	}
	return fmt.Errorf("packet of %d bytes: neither an answer nor an error", size)
}

// ping sends ICMP echo requests from a socket that needs no capability. Whether a process may open one, its node
// decides.
func (t Target) ping(ctx context.Context) error {
	return persist(ctx, func(ctx context.Context) error {
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
			err = wrong("the answer is not what was sent")
		}
		return err
	})
}
