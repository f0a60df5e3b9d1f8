package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ICMP echo (RFC 792).
const (
	icmpHeader    = 8
	icmpRequest   = 8
	icmpReply     = 0
	pingSequence0 = 1
)

// ping sends ICMP echo requests and prints a line for each answer.
func ping(ctx context.Context, args []string) error {
	o, err := parseOptions("ping", "HOST", args)
	if err != nil {
		return err
	}
	dialer := net.Dialer{Timeout: o.timeout}
	if o.df {
		dialer.Control = forbidFragments
	}
	conn, err := dialer.DialContext(ctx, "ip4:icmp", o.target)
	if err != nil {
		return err
	}
	defer conn.Close()
	icmp, ok := conn.(*net.IPConn)
	if !ok {
		return fmt.Errorf("ping %s: connection of type %T", o.target, conn)
	}
	for sequence := pingSequence0; sequence < pingSequence0+o.count; sequence++ {
		began := time.Now()
		if err := pingUntil(ctx, icmp, uint16(sequence), o); err != nil {
			return fmt.Errorf("ping %s, %d bytes: %w", o.target, o.size, err)
		}
		took := time.Since(began).Round(time.Microsecond)
		fmt.Fprintf(os.Stdout, "%d bytes from %s: seq=%d time=%s\n", o.size, conn.RemoteAddr(), sequence, took)
	}
	return nil
}

// pingUntil repeats a request until it is answered or its time is over.
func pingUntil(ctx context.Context, conn *net.IPConn, sequence uint16, o options) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return persist(ctx, func() error {
		if err := setDeadline(ctx, conn); err != nil {
			return err
		}
		return pingOnce(conn, sequence, pattern(o.size))
	})
}

func pingOnce(conn *net.IPConn, sequence uint16, payload []byte) error {
	id := uint16(os.Getpid())
	request := make([]byte, icmpHeader, icmpHeader+len(payload))
	request[0] = icmpRequest
	binary.BigEndian.PutUint16(request[4:], id)
	binary.BigEndian.PutUint16(request[6:], sequence)
	request = append(request, payload...)
	binary.BigEndian.PutUint16(request[2:], checksum(request))
	if _, err := conn.Write(request); err != nil {
		if errors.Is(err, unix.EMSGSIZE) {
			return fmt.Errorf("larger than the link's MTU: %w", err)
		}
		return err
	}
	buf := make([]byte, maxDatagram)
	for {
		n, _, err := conn.ReadFromIP(buf) // unlike Read, without the IP header
		if err != nil {
			return err
		}
		// Every socket of this kind sees every reply to this host.
		reply := buf[:n]
		ours := n >= icmpHeader && reply[0] == icmpReply &&
			binary.BigEndian.Uint16(reply[4:]) == id && binary.BigEndian.Uint16(reply[6:]) == sequence
		if !ours {
			continue
		}
		if n != len(request) {
			return fmt.Errorf("answer of %d bytes, want %d", n-icmpHeader, len(payload))
		}
		return nil
	}
}

// checksum is the Internet checksum (RFC 1071) of b.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
