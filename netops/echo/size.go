package echo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// LeastPacket is the size in bytes of IP packets that every path carries (RFC 791). Smaller sizes are not tried.
const LeastPacket = 576

// packetHeaders is the size of the headers before an echo, in bytes: IP 20, UDP 8.
const packetHeaders = 28

// SizeConfig is the configuration of LargestPacket.
type SizeConfig struct {
	Target netip.AddrPort // must answer echoes
	Most   int            // bytes: largest packet to try, the MTU of the local link
	Known  int            // last known result, tried first; 0: none
}

// ErrSilent means that not even the smallest packet was answered.
var ErrSilent = errors.New("no answer, however small the packet")

// LargestPacket returns the size in bytes of the largest IP packet, from LeastPacket to cfg.Most, that reaches the
// target and returns without fragmentation. It does not depend on ICMP errors: packets of several sizes are sent at
// once, and the answered ones count. It takes one round trip if the largest passes, otherwise some rounds of half a
// second each.
func (s *Socket) LargestPacket(ctx context.Context, cfg SizeConfig) (int, error) {
	if !validTarget(cfg.Target) || cfg.Most < LeastPacket || cfg.Most > MaxSize+packetHeaders {
		return 0, fmt.Errorf("measure packets of up to %d bytes to %v: want an IPv4 address, a port, and %d bytes at least",
			cfg.Most, cfg.Target, LeastPacket)
	}
	size, err := search(cfg.Most, cfg.Known, func(sizes []int) (int, error) { return s.largestOf(ctx, cfg.Target, sizes) })
	if err != nil {
		return 0, fmt.Errorf("measure packets to %v: %w", cfg.Target, err)
	}
	return size, nil
}

// searchFan is the number of sizes that are tried at once to narrow a range.
const searchFan = 16

// search returns the largest size that passes: try returns the largest of some sizes that does, 0 if none does. The
// largest of all sizes is tried in each round, because its packets may have been lost for other reasons.
func search(most, known int, try func(sizes []int) (int, error)) (int, error) {
	sizes := []int{LeastPacket}
	for _, size := range []int{known, known + 1} {
		if size > LeastPacket && size < most {
			sizes = append(sizes, size)
		}
	}
	if most > LeastPacket {
		sizes = append(sizes, most)
	}
	low, high := 0, most
	for {
		got, err := try(sizes)
		switch {
		case err != nil:
			return 0, err
		case got == most:
			return most, nil
		case got == 0 && low == 0:
			return 0, ErrSilent
		case got == 0: // smaller sizes were answered in an earlier round
			high = sizes[0]
		default:
			low, high = got, min(high, sizes[slices.Index(sizes, got)+1])
		}
		if high-low <= 1 {
			return low, nil
		}
		sizes = sizes[:0]
		for step := max(1, (high-low)/(searchFan+1)); low+(len(sizes)+1)*step < high; {
			sizes = append(sizes, low+(len(sizes)+1)*step)
		}
		sizes = append(sizes, most)
	}
}

// Times of one round.
const (
	sizeSilence  = 2 * time.Second        // until the first reply
	sizePatience = 400 * time.Millisecond // after that, or sizeRTTs round trips if that is longer
	sizeRTTs     = 8
	sizeRepeat   = 100 * time.Millisecond // between two packets of the same size
	sizeTries    = 3                      // packets of one size, after the first reply to any
)

// sizer is one round of LargestPacket.
type sizer struct {
	target  netip.AddrPort
	begin   time.Time
	sizes   []int // by sequence number
	answers chan sizeAnswer
}

type sizeAnswer struct {
	sequence int
	rtt      time.Duration
}

// receive records a reply; the socket's mu is held. A reply is as long as its request, so that it verifies both
// directions.
func (z *sizer) receive(from netip.AddrPort, reply Message) Reason {
	switch {
	case from != z.target:
		return ReasonSource
	case int64(reply.Sequence) >= int64(len(z.sizes)) || reply.Size != z.sizes[reply.Sequence]-packetHeaders:
		return ReasonSequence
	}
	rtt := time.Since(time.Unix(0, reply.Sent))
	if rtt < 0 || rtt > time.Since(z.begin) {
		return ReasonSequence
	}
	select {
	case z.answers <- sizeAnswer{int(reply.Sequence), rtt}:
	default: // more replies than requests
		return ReasonSequence
	}
	return ""
}

// largestOf returns the largest of some sizes, ascending, that is answered; 0 if none is.
func (s *Socket) largestOf(ctx context.Context, target netip.AddrPort, sizes []int) (largest int, err error) {
	z := &sizer{target: target, begin: time.Now(), sizes: sizes, answers: make(chan sizeAnswer, 2*searchFan*sizeTries)}
	s.mu.Lock()
	session := s.newSession()
	s.sizers[session] = z
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.sizers, session)
		s.mu.Unlock()
	}()
	end, repeat := time.NewTimer(sizeSilence), time.NewTicker(sizeRepeat)
	defer end.Stop()
	defer repeat.Stop()
	answered := make([]bool, len(sizes))
	s.sendSizes(z, session, answered)
	for tries := 1; ; {
		select {
		case a := <-z.answers:
			if largest == 0 {
				end.Reset(min(max(sizePatience, sizeRTTs*a.rtt), sizeSilence))
			}
			answered[a.sequence] = true
			if largest = max(largest, sizes[a.sequence]); largest == sizes[len(sizes)-1] {
				return largest, nil
			}
		case <-repeat.C:
			if largest == 0 || tries < sizeTries {
				s.sendSizes(z, session, answered)
				tries++
			}
		case <-end.C:
			return largest, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-s.done:
			return 0, net.ErrClosed
		}
	}
}

// sendSizes sends one packet of each size that has not been answered. Packets that cannot be sent, because they are
// larger than the local link's MTU, count as not answered.
func (s *Socket) sendSizes(z *sizer, session uint64, answered []bool) {
	for i, size := range z.sizes {
		if answered[i] {
			continue
		}
		m := Message{Kind: Request, Session: session, Sequence: uint32(i), Sent: time.Now().UnixNano(), Size: size - packetHeaders}
		if packet, err := m.AppendTo(nil); err == nil {
			_ = s.conn.WriteTo(packet, z.target, Route{})
		}
	}
}
