package main

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// retryAfter is the time after which a request without an answer is repeated. A connection that is not established in
// connectTime is retried from another port: conntrack keeps the first path of a connection to a Service, which leads
// nowhere if kube-proxy had not programmed the Service then.
const (
	retryAfter  = time.Second
	connectTime = 5 * time.Second
)

// persist retries ask each second until it succeeds or the context ends, and returns the last error. Packets get lost,
// and a gateway that renews its tunnel sends ICMP errors for a moment. Errors that a retry does not repair are returned
// immediately: a wrong answer, and a packet that exceeds the path MTU.
func persist(ctx context.Context, ask func() error) error {
	tick := time.NewTicker(retryAfter)
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

// dial opens a connection like net.Dialer, with retries.
func dial(ctx context.Context, dialer *net.Dialer, network, address string) (conn net.Conn, err error) {
	err = persist(ctx, func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		conn, err = dialer.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// setDeadline bounds the wait for an answer by the next retry, or by the context.
func setDeadline(ctx context.Context, conn net.Conn) error {
	deadline := time.Now().Add(retryAfter)
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		deadline = end
	}
	return conn.SetDeadline(deadline)
}
