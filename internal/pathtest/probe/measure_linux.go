package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Limits of a measurement.
const (
	maxRoundTrips  = 1 << 16
	maxConnections = 10_000 // each takes a port, and conntrack entries on the path
)

// Measurement measures the path to a meter.
type Measurement struct {
	Meter   netip.AddrPort
	Token   string
	Streams int
	Each    time.Duration // duration of each of the four parts
}

// Report measures, and returns the report.
func (m Measurement) Report(ctx context.Context) (string, error) {
	figures, err := m.measure(ctx)
	measured := Measured{Figures: figures}
	if err != nil {
		measured = Measured{Failed: fmt.Sprintf("%.300s", err)}
	}
	text, err := json.Marshal(measured)
	return string(text), err
}

func (m Measurement) measure(ctx context.Context) (*Figures, error) {
	err := retry(ctx, func(ctx context.Context) error { return m.connect(ctx, modeClose) })
	if err != nil {
		return nil, err
	}
	var f Figures
	if f.Stream, err = m.throughput(ctx, 1); err != nil {
		return nil, fmt.Errorf("one stream: %w", err)
	}
	if f.Streams, err = m.throughput(ctx, m.Streams); err != nil {
		return nil, fmt.Errorf("%d streams: %w", m.Streams, err)
	}
	trips, err := m.roundTrips(ctx)
	if err != nil {
		return nil, fmt.Errorf("round trips: %w", err)
	}
	slices.Sort(trips)
	f.P50, f.P90, f.P99 = percentile(trips, 50), percentile(trips, 90), percentile(trips, 99)
	if f.Connections, err = m.connections(ctx); err != nil {
		return nil, fmt.Errorf("connections: %w", err)
	}
	return &f, nil
}

// percentile returns the smallest value that at least percent of the sorted ones do not exceed, in seconds.
func percentile(sorted []time.Duration, percent int) float64 {
	return sorted[(len(sorted)*percent+99)/100-1].Seconds()
}

// open opens a connection to the meter, and verifies that it is the meter.
func (m Measurement) open(ctx context.Context, mode byte) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connTimeout)
	defer cancel()
	conn, err := Target{Address: m.Meter, Token: m.Token}.open(ctx, "tcp4", nil)
	if err != nil {
		return nil, err
	}
	ack := make([]byte, ackSize)
	if _, err = conn.Write([]byte{mode}); err == nil {
		_, err = io.ReadFull(conn, ack)
	}
	if err == nil && !bytes.Equal(ack, acknowledgement(m.Token)) {
		err = wrongAnswer("who answers is not the test's server")
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// connect opens and closes a connection. The reset leaves no port in TIME_WAIT.
func (m Measurement) connect(ctx context.Context, mode byte) error {
	conn, err := m.open(ctx, mode)
	if err != nil {
		return err
	}
	_ = conn.SetLinger(0) // otherwise the port stays in TIME_WAIT
	return conn.Close()
}

// throughput returns the received bits per second of concurrent streams, in total.
func (m Measurement) throughput(ctx context.Context, streams int) (float64, error) {
	conns := make([]*net.TCPConn, streams)
	for i := range conns {
		conn, err := m.open(ctx, modeSink)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		conns[i] = conn
	}
	data, begun := make([]byte, chunk), time.Now()
	var arrived atomic.Int64
	var group errgroup.Group
	for _, conn := range conns {
		group.Go(func() error {
			for time.Since(begun) < m.Each && ctx.Err() == nil {
				if _, err := conn.Write(data); err != nil {
					return err
				}
			}
			if err := conn.CloseWrite(); err != nil {
				return err
			}
			var count int64
			err := binary.Read(conn, binary.BigEndian, &count)
			arrived.Add(count)
			return err
		})
	}
	err := group.Wait()
	return float64(arrived.Load()) * 8 / time.Since(begun).Seconds(), err
}

// roundTrips returns the round-trip times of consecutive messages on one connection.
func (m Measurement) roundTrips(ctx context.Context) (trips []time.Duration, err error) {
	conn, err := m.open(ctx, modeEcho)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	message := make([]byte, echoSize)
	for begun := time.Now(); len(trips) == 0 || time.Since(begun) < m.Each && len(trips) < maxRoundTrips; {
		sent := time.Now()
		if _, err = conn.Write(message); err == nil {
			_, err = io.ReadFull(conn, message)
		}
		if err != nil {
			return nil, err
		}
		trips = append(trips, time.Since(sent))
	}
	return trips, nil
}

// connections returns how many connections are opened and closed per second, with as many concurrent ones as streams.
func (m Measurement) connections(ctx context.Context) (float64, error) {
	var opened atomic.Int64
	var group errgroup.Group
	begun := time.Now()
	for range m.Streams {
		group.Go(func() error {
			for time.Since(begun) < m.Each && opened.Load() < maxConnections {
				if err := m.connect(ctx, modeClose); err != nil {
					return err
				}
				opened.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(opened.Load()) / time.Since(begun).Seconds(), err
}
