package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// defaultTimeout is the default time limit of an exchange. It is long, because a busy machine is not a broken path.
const defaultTimeout = 5 * time.Minute

// options of the client verbs.
type options struct {
	timeout time.Duration
	size    int  // bytes of payload
	df      bool // forbid fragments
	count   int
	target  string
}

// parseOptions parses flags and the one argument, whose name in errors is what.
func parseOptions(verb, what string, args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	flags.DurationVar(&o.timeout, "timeout", defaultTimeout, "for the whole exchange, or of each ping")
	flags.IntVar(&o.size, "size", 64, "bytes of payload; get: not used")
	flags.BoolVar(&o.df, "df", false, "set the don't-fragment bit, and ignore what is known of the path MTU")
	flags.IntVar(&o.count, "count", 1, "number of pings")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() != 1 {
		return o, fmt.Errorf("%s: want one argument, %s", verb, what)
	}
	if o.size < 0 || o.size > maxDatagram && verb != "tcp" {
		return o, fmt.Errorf("%s: size %d: want 0 to %d", verb, o.size, maxDatagram)
	}
	o.target = flags.Arg(0)
	return o, nil
}

// get prints a page.
func get(ctx context.Context, args []string) error {
	o, err := parseOptions("get", "a URL", args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.target, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, &net.Dialer{}, network, address)
		},
	}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", o.target, resp.Status)
	}
	return nil
}

// echo sends payload to an echo of serve, checks that it comes back, and prints the description of the echo.
func echo(ctx context.Context, network string, args []string) error {
	o, err := parseOptions(network, "HOST:PORT", args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	dialer := net.Dialer{}
	if o.df {
		dialer.Control = forbidFragments
	}
	conn, err := dial(ctx, &dialer, network, o.target)
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := exchange(ctx, conn, network, pattern(o.size))
	if err != nil {
		return fmt.Errorf("%s echo of %s, %d bytes: %w", network, o.target, o.size, err)
	}
	_, err = os.Stdout.Write(answer)
	return err
}

// exchange returns the first line of the answer, after checking the rest.
func exchange(ctx context.Context, conn net.Conn, network string, payload []byte) ([]byte, error) {
	send := exchangeStream
	if network == "udp" {
		send = exchangeDatagram
	}
	all, err := send(ctx, conn, payload)
	if err != nil {
		return nil, err
	}
	i := bytes.IndexByte(all, '\n') + 1
	line, rest, want := all[:i], all[i:], payload
	if network == "udp" { // the line replaces the payload's first bytes
		want = payload[min(len(line), len(payload)):]
	}
	if i == 0 || !bytes.Equal(rest, want) {
		return nil, errors.New("the answer is not what was sent")
	}
	return line, nil
}

func exchangeDatagram(ctx context.Context, conn net.Conn, payload []byte) ([]byte, error) {
	buf := make([]byte, maxDatagram)
	n := 0
	err := persist(ctx, func() error {
		if err := setDeadline(ctx, conn); err != nil {
			return err
		}
		if _, err := conn.Write(payload); err != nil {
			return err
		}
		var err error
		n, err = conn.Read(buf)
		return err
	})
	return buf[:n], err
}

// exchangeStream sends and receives at once: the echo stops reading when its answers are not read.
func exchangeStream(ctx context.Context, conn net.Conn, payload []byte) ([]byte, error) {
	stream, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("connection of type %T", conn)
	}
	deadline, _ := ctx.Deadline() // zero, as for none, where there is none
	if err := stream.SetDeadline(deadline); err != nil {
		return nil, err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := stream.Write(payload)
		sent <- errors.Join(err, stream.CloseWrite())
	}()
	all, err := io.ReadAll(stream)
	if err != nil {
		return nil, err
	}
	return all, <-sent
}

// pattern is a payload in which a missing or moved part shows.
func pattern(size int) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = byte(i ^ i>>8)
	}
	return p
}

// forbidFragments is a net.Dialer's Control: packets go out whole, or not at all.
func forbidFragments(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	})
	return errors.Join(err, failed)
}
