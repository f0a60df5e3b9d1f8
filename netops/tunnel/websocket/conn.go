package websocket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pingEvery is the interval of pings in both directions: proxies end connections that are silent for 30 s and more.
	pingEvery = 10 * time.Second
	// pongWithin is the time for the answer. A connection that is silent for longer has ended somewhere.
	pongWithin = 5 * time.Second
	// closeWithin limits the last write.
	closeWithin = time.Second
	readBuffer  = 128 << 10 // bytes; at least one frame
)

// errClosed means that the other end closed the connection in order.
var errClosed = errors.New("closed by the other end")

// conn is a WebSocket connection that carries the datagrams of one tunnel, each in a frame.
type conn struct {
	raw     net.Conn
	joined  *joined // below TLS; nil: there is none
	client  bool    // this end masks
	queue   *queue
	deliver func(b []byte, size int) // datagrams of one size; the last may be shorter
	// allow is called with the session of echoes that the other end will send by UDP.
	allow      func(session uint64)
	congestion string // its congestion control; "": not known

	heard atomic.Int64  // Unix time in nanoseconds of the last bytes
	once  sync.Once     // closes the connection
	done  chan struct{} // closed then
	err   error         // its reason
}

func newConn(raw net.Conn, j *joined, client bool) *conn {
	c := &conn{raw: raw, joined: j, client: client, queue: newQueue(client, rand.Uint32), done: make(chan struct{})}
	c.heard.Store(time.Now().UnixNano())
	return c
}

// run reads and writes until the connection ends, and returns the reason.
func (c *conn) run(log *slog.Logger, buffered []byte) error {
	go c.write()
	c.close(c.read(buffered))
	log.Debug("WebSocket connection has ended", "reason", c.err)
	return c.err
}

// close ends the connection, for a reason. It may be called more than once.
func (c *conn) close(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.done)
		if c.joined != nil { // TLS would tell the other end first, and wait five seconds for one that does not read
			_ = c.joined.Close()
			return
		}
		_ = c.raw.Close()
	})
}

// announce sends a session to the other end in a ping, whose content applications choose (RFC 6455, section 5.5.2).
func (c *conn) announce(session uint64) {
	c.queue.addControl(opPing, binary.BigEndian.AppendUint64(nil, session))
}

// write writes what is in the queue, and pings.
func (c *conn) write() {
	tick := time.NewTicker(pingEvery / 2)
	defer tick.Stop()
	var b []byte
	for pings := 0; ; {
		select {
		case <-c.done:
			return
		case <-tick.C:
			if silent := time.Since(time.Unix(0, c.heard.Load())); silent > pingEvery+pongWithin {
				c.close(fmt.Errorf("nothing received for %s", silent.Round(time.Second)))
				return
			}
			if pings++; pings%2 == 0 {
				c.queue.addControl(opPing, nil)
			}
		case <-c.queue.ready:
		}
		for {
			if b = c.queue.take(b[:0], time.Now()); len(b) == 0 {
				break
			}
			if err := c.send(b); err != nil {
				c.close(err)
				return
			}
		}
	}
}

// send writes to the connection at once.
func (c *conn) send(b []byte) error {
	if c.joined == nil {
		_, err := c.raw.Write(b)
		return err
	}
	c.joined.hold()
	_, err := c.raw.Write(b)
	return errors.Join(err, c.joined.flush())
}

// read handles frames until an error. Datagrams that have arrived together are delivered together.
func (c *conn) read(buffered []byte) error {
	b := make([]byte, readBuffer)
	have := copy(b, buffered)
	r := reader{conn: c, run: run{deliver: c.deliver}}
	for {
		used := 0
		for {
			f, length, err := parseFrame(b[used:have], !c.client)
			if err != nil {
				return err
			}
			if length == 0 {
				break
			}
			if err := r.handle(f); err != nil {
				return err
			}
			used += length
		}
		r.run.flush()
		have = copy(b, b[used:have])
		n, err := c.raw.Read(b[have:])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		have += n
		c.heard.Store(time.Now().UnixNano())
	}
}

// reader has the state between frames.
type reader struct {
	*conn
	run     run
	message []byte // a datagram that something between has divided into several frames
	partial bool
}

// handle handles one frame.
func (r *reader) handle(f frame) error {
	switch f.opcode {
	case opBinary, opContinuation:
		if (f.opcode == opContinuation) != r.partial || len(r.message)+len(f.payload) > maxDatagram {
			return fmt.Errorf("%w: pieces in disorder", errFrame)
		}
		if r.partial || !f.final {
			r.message = append(r.message, f.payload...)
			f.payload = r.message
		}
		if r.partial = !f.final; !r.partial {
			r.run.add(f.payload)
			r.message = r.message[:0]
		}
	case opPing:
		if len(f.payload) == 8 && r.allow != nil {
			r.allow(binary.BigEndian.Uint64(f.payload))
		}
		r.queue.addControl(opPong, f.payload)
	case opPong:
	case opClose:
		return errClosed
	default:
		return fmt.Errorf("%w: opcode %d", errFrame, f.opcode)
	}
	return nil
}

// run collects datagrams of one size, which the kernel takes in one call.
type run struct {
	deliver func(b []byte, size int)
	bytes   []byte
	size    int
}

const (
	runMost  = 60 << 10 // bytes in one call
	runCount = 60       // datagrams in one call: UDP_MAX_SEGMENTS is 64 in include/linux/udp.h
)

// add copies a datagram.
func (r *run) add(datagram []byte) {
	if len(datagram) == 0 {
		return
	}
	whole := r.size > 0 && len(r.bytes)%r.size == 0
	if !whole || len(datagram) > r.size || len(r.bytes)+len(datagram) > runMost || len(r.bytes)/max(1, r.size) >= runCount {
		r.flush()
		r.size = len(datagram)
	}
	r.bytes = append(r.bytes, datagram...)
}

func (r *run) flush() {
	if len(r.bytes) > 0 {
		r.deliver(r.bytes, r.size)
	}
	r.bytes, r.size = r.bytes[:0], 0
}

// joined is the connection below TLS. It joins the records of one write, of 16 KiB each, to one system call.
type joined struct {
	net.Conn

	mu      sync.Mutex
	holding bool
	bytes   []byte
}

// Write implements net.Conn.
func (j *joined) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.holding {
		j.bytes = append(j.bytes, b...)
		return len(b), nil
	}
	return j.Conn.Write(b)
}

// hold keeps what is written until flush.
func (j *joined) hold() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.holding = true
}

func (j *joined) flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.holding = false
	_, err := j.Conn.Write(j.bytes)
	j.bytes = j.bytes[:0]
	return err
}
