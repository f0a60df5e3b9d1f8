package main

import (
	"context"
	"errors"
	"flag"
	"net"
	"time"
)

// send sends datagrams that are filled with a text, a number of times or until it is ended: to each target from a
// socket that it keeps, and to one of them in turn from a new one. It ignores refused packets, and reads no answers.
func send(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("send", flag.ContinueOnError)
	every := flags.Duration("every", 200*time.Millisecond, "between two rounds")
	rounds := flags.Int("rounds", 0, "how often; 0: until it is ended")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 || *every <= 0 || flags.Arg(0) == "" {
		return errors.New("send: want -every above zero, and two arguments at least: TEXT HOST:PORT")
	}
	payload, targets := repeated(flags.Arg(0)), flags.Args()[1:]
	var dialer net.Dialer
	var kept []net.Conn
	for _, target := range targets {
		conn, err := dialer.DialContext(ctx, "udp4", target)
		if err != nil {
			return err
		}
		defer conn.Close()
		kept = append(kept, conn)
	}
	tick := time.NewTicker(*every)
	defer tick.Stop()
	for round := 0; *rounds == 0 || round < *rounds; round++ {
		for _, conn := range kept {
			_, _ = conn.Write(payload)
		}
		if conn, err := dialer.DialContext(ctx, "udp4", targets[round%len(targets)]); err == nil {
			_, _ = conn.Write(payload)
			_ = conn.Close()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return nil
}

// repeated fills a datagram with a text, so that a packet that quotes a part of it is recognised, too.
func repeated(text string) []byte {
	const size = 400 // bytes at least
	var payload []byte
	for len(payload) < size {
		payload = append(payload, text...)
	}
	return payload
}
