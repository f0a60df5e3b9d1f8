package main

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// again is after how long a question that got no answer is asked once more. A connection that is not established in
// connectTime is begun anew, from another port: conntrack keeps the first path of a connection to a Service, and leads
// it nowhere if kube-proxy had not programmed the Service then.
const (
	again       = time.Second
	connectTime = 5 * time.Second
)

// persist asks until there is an answer, once each second, as long as the context lasts, and returns the last error.
// Packets get lost, and a gateway that renews its tunnel sends ICMP errors for a moment. Errors that a repetition does
// not repair are returned at once: a wrong answer, and a packet that exceeds the path MTU.
func persist(ctx context.Context, ask func() error) error {
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		err := ask()
		var network *net.OpError
		if !errors.As(err, &network) || errors.Is(err, unix.EMSGSIZE) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// dial opens a connection as net.Dialer does, persistently.
func dial(ctx context.Context, dialer *net.Dialer, network, address string) (conn net.Conn, err error) {
	err = persist(ctx, func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		conn, err = dialer.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// setDeadline ends waiting for an answer when it is time to ask again, or with the context.
func setDeadline(ctx context.Context, conn net.Conn) error {
	deadline := time.Now().Add(again)
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		deadline = end
	}
	return conn.SetDeadline(deadline)
}
